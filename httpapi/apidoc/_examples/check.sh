curl --silent --show-error --fail --max-time 5 \
  'https://registry.example/api/check?id=99016474520097277832' ||
  echo 'nie wiadomo'  # 503, inny błąd albo brak odpowiedzi
