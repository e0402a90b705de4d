#!/bin/sh
# Creates the mirror EDGE with the nats command and the edge's key (NATS_URL, NATS_NKEY), if there is none. It takes the origin's
# registry-epoch, so that the edge's feed of changes has the origin's name and its server notices another origin.
set -eu
nats="nats --inbox-prefix _INBOX.edge"
$nats stream info EDGE > /dev/null 2>&1 && exit
epoch=$($nats --js-domain registry stream info REGISTRY --json | sed -n 's/.*"registry-epoch": *"\([^"]*\)".*/\1/p')
[ -n "$epoch" ] || { echo "the origin does not answer, or its stream has no registry-epoch in its metadata" >&2; exit 1; }
sed "s/\"name\": \"EDGE\",/& \"metadata\": { \"registry-epoch\": \"$epoch\" },/" "$(dirname "$0")/EDGE.json" | $nats stream add EDGE --config /dev/stdin
