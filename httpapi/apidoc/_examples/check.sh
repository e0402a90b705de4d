id='99016474520097277832'
{
  expr "$id" : '[0-9]\{15,20\}$' >/dev/null &&  # nie zgubione po drodze
    curl --silent --show-error --fail --max-time 5 \
      "https://registry.example/api/check?id=$id"
} || echo 'nie wiadomo'  # 503, inny błąd albo brak odpowiedzi
