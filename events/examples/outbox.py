# A worker for outbox.sql: publishes what is new, forever. Several may run at once: of a subject the greatest revision is true.
# pip install nats-py "psycopg[binary]"
import asyncio, json, os, sys, time
import nats, psycopg

AWAY = (nats.errors.Error, asyncio.TimeoutError)  # the broker

async def publish(nc, db, subject, revision, event):
    state, payload = "sent", event.encode()
    try:  # the registry's own decoder says why an event would be rejected
        answer = json.loads((await nc.request("registry-validate", payload, timeout=2)).data)
    except AWAY:  # no server runs: publish unasked
        answer = {"valid": True}
    if not answer["valid"]:
        state = answer["reason"]
    elif answer.get("stale"):
        state = f"stale: the registry has revision {answer['known']}; this database lost later changes of the row"
    if state == "sent":
        await nc.jetstream().publish(subject, payload, headers={  # returns when the stream has stored it
            "Content-Type": "application/cloudevents+json"})
    else:
        print(f"{subject}: {state}", file=sys.stderr)
    # Not a newer revision, if the row has changed meanwhile.
    await db.execute("UPDATE outbox SET state = %s WHERE subject = %s AND revision = %s", (state, subject, revision))

async def main():
    nc = await nats.connect(os.environ.get("NATS_URL", "nats://127.0.0.1:4222"), max_reconnect_attempts=-1)
    reconciled = -60
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(autocommit=True) as db:  # PGHOST, PGDATABASE …
                while True:
                    if time.monotonic() - reconciled > 60:
                        await db.execute("SELECT reconcile()")
                        reconciled = time.monotonic()
                    rows = await (await db.execute("SELECT * FROM unsent ORDER BY revision LIMIT 100")).fetchall()
                    for row in rows:
                        await publish(nc, db, *row)
                    if not rows:
                        await asyncio.sleep(1)
        except (*AWAY, psycopg.Error) as err:  # one of them is away: the row is still there
            print(err or repr(err), file=sys.stderr)
            await asyncio.sleep(1)

asyncio.run(main())
