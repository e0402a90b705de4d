#!/bin/sh
# A worker for outbox.sql: publishes what is new (PGHOST, PGDATABASE, REGISTRY_NATS_URL …), and may run every minute, one at a
# time. Lines that the registry would refuse are named and stay until the row is corrected; all others are sent.
set -eu
psql -qX -v ON_ERROR_STOP=1 -c "UPDATE outbox SET state = 'sending' WHERE state = 'new'" # a later change of a row makes it new again
psql -AtX -v ON_ERROR_STOP=1 -c "SELECT event FROM unsent JOIN outbox USING (subject) WHERE state = 'sending' ORDER BY 1" > unsent.ndjson
registry publish --max-errors 1000000 unsent.ndjson
psql -qX -v ON_ERROR_STOP=1 -c "UPDATE outbox SET state = 'sent' WHERE state = 'sending'"
