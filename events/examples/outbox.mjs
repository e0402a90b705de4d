// A worker for outbox.sql: publishes what is new, forever. Several may run at once: of a subject the greatest revision is true.
// npm install pg @nats-io/transport-node @nats-io/jetstream
import { setTimeout } from "node:timers/promises";
import { connect, headers } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";
import pg from "pg";

const db = new pg.Pool(); // PGHOST, PGDATABASE …
db.on("error", (err) => console.error("database:", err.message)); // a lost connection; the next query makes another one
const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222", maxReconnectAttempts: -1, waitOnFirstConnect: true });
const js = jetstream(nc);

async function publish({ subject, revision, event }) {
  let state = "sent";
  // The registry's own decoder says why an event would be rejected. Without an answer, publish unasked: no server runs.
  const answer = await nc.request("registry-validate", event, { timeout: 2000 }).then((m) => m.json(), () => ({ valid: true }));
  if (!answer.valid) state = answer.reason;
  else if (answer.stale) state = `stale: the registry has revision ${answer.known}; this database lost later changes of the row`;
  if (state === "sent") {
    const h = headers();
    h.set("Content-Type", "application/cloudevents+json");
    await js.publish(subject, event, { headers: h }); // returns when the stream has stored it
  } else console.error(`${subject}: ${state}`);
  await db.query("UPDATE outbox SET state = $3 WHERE subject = $1 AND revision = $2", [subject, revision, state]); // not a newer one
}

for (let reconciled = -Infinity; ; ) {
  try {
    if (performance.now() - reconciled > 60_000) {
      await db.query("SELECT reconcile()");
      reconciled = performance.now();
    }
    const { rows } = await db.query("SELECT * FROM unsent ORDER BY revision LIMIT 100");
    for (const row of rows) await publish(row);
    if (rows.length) continue;
  } catch (err) {
    console.error(err.message); // the broker or the database is away: the row is still there
  }
  await setTimeout(1000);
}
