// Prints what the registry has rejected, also while this was away. Usage: node rejected.mjs [LAST], where LAST is the number
// before the last line that you dealt with. npm install @nats-io/transport-node
import { setTimeout } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222", maxReconnectAttempts: -1 });
const get = (question) => nc.request("$JS.API.STREAM.MSG.GET.REGISTRY_REJECTED", JSON.stringify(question), { timeout: 5000 })
  .then((m) => m.json(), (error) => ({ error }));
const subject = "registry-rejected.>";
let last = Number(process.argv[2] ?? 0);
for (;;) {
  const { message, error } = await get({ seq: last + 1, next_by_subj: subject }); // the next one from there on
  if (message) {
    const headers = Buffer.from(message.hdrs, "base64").toString();
    const header = (name) => headers.match(new RegExp(`^${name}: (.*)\r$`, "m"))?.[1];
    last = message.seq;
    console.log(last, header("Registry-Subject"), header("Registry-Reason"), Buffer.from(message.data ?? "", "base64").toString());
    continue;
  }
  if (error.err_code !== 10037) console.error(error); // 10037: there is none, yet
  const newest = await get({ last_by_subj: subject });
  if (newest.message?.seq < last) {
    console.error(`the stream was lost and begins again: its newest number is ${newest.message.seq}, not ${last}`);
    last = 0;
  } else await setTimeout(10_000);
}
