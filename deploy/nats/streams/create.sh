#!/bin/sh
# Creates the registry's missing streams with the nats command and the operator's key (NATS_URL, NATS_NKEY). It leaves
# existing streams as they are. The stream of events gets a random registry-epoch (events/CONTRACT.md#stream).
set -eu
for file in "$(dirname "$0")"/*.json; do
  name=$(basename "$file" .json)
  nats --inbox-prefix _INBOX.operator stream info "$name" > /dev/null 2>&1 && continue
  epoch=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  sed "s/\"name\": \"REGISTRY\",/& \"metadata\": { \"registry-epoch\": \"$epoch\" },/" "$file" |
    nats --inbox-prefix _INBOX.operator stream add "$name" --config /dev/stdin
done
