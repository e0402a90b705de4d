// Prints what the registry has rejected, also while this was away. Usage: node rejected.mjs [LAST], where LAST is the number
// before the last line that you dealt with. npm install @nats-io/transport-node
import { setTimeout } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222", maxReconnectAttempts: -1 });
let last = Number(process.argv[2] ?? 0);
for (;;) {
  const question = JSON.stringify({ seq: last + 1, next_by_subj: "registry-rejected.>" }); // the next one from there on
  const answer = await nc.request("$JS.API.STREAM.MSG.GET.REGISTRY_REJECTED", question, { timeout: 5000 }).then((m) => m.json(), (error) => ({ error }));
  if (answer.error) {
    if (answer.error.code !== 404) console.error(answer.error); // 404: there is none, yet
    await setTimeout(10_000);
    continue;
  }
  const { seq, hdrs, data } = answer.message;
  const header = (name) => Buffer.from(hdrs, "base64").toString().match(new RegExp(`^${name}: (.*)\r$`, "m"))?.[1];
  last = seq;
  console.log(last, header("Registry-Subject"), header("Registry-Reason"), Buffer.from(data ?? "", "base64").toString());
}
