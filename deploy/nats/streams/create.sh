#!/bin/sh
# Creates the registry's missing streams with the nats command and the operator's key (NATS_URL, NATS_NKEY). It leaves
# existing streams as they are.
set -eu
cd "$(dirname "$0")"
for file in *.json; do
  name=${file%.json}
  nats --inbox-prefix _INBOX.operator stream info "$name" > /dev/null 2>&1 ||
    nats --inbox-prefix _INBOX.operator stream add "$name" --config "$file"
done
