// A stand-in for the chat platform: the REST API and the gateway, as far as the bots of httpapi/site/bots use
// them. It is told what to do on standard input, a command a line, and says what bots do on standard output.
//   node platform.mjs: first line "http://…", then for each message "said <text as JSON>", for any other
//   request that changes something "did <method> <path>". Commands: "join <id>", "again" (ends the sessions).
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { deflateSync, constants } from "node:zlib";

const { WebSocketServer } = createRequire(process.env.REGISTRY_NPM + "/node_modules/discord.js/")("ws");
const GUILD = "1000000000000000001", CHANNEL = "1000000000000000002", BOT = "1000000000000000003";
const user = (id) => ({ id, username: "u" + id, discriminator: "0", global_name: null, avatar: null, bot: id === BOT, public_flags: 0, flags: 0 });
const member = (id) => ({ user: user(id), nick: null, roles: [], joined_at: "2026-01-01T00:00:00.000000+00:00", deaf: false, mute: false, flags: 0 });
const members = new Set([BOT, ...process.argv.slice(2)]);
const channel = { id: CHANNEL, type: 0, guild_id: GUILD, name: "moderatorzy", position: 0, permission_overwrites: [], parent_id: null, nsfw: false, topic: null, rate_limit_per_user: 0 };
const guild = () => ({
  id: GUILD, name: "Serwer", owner_id: BOT, icon: null, splash: null, banner: null, description: null, features: [], emojis: [], stickers: [],
  roles: [{ id: GUILD, name: "@everyone", permissions: "8", position: 0, color: 0, hoist: false, managed: false, mentionable: false, flags: 0 }],
  channels: [channel], threads: [], voice_states: [], presences: [], stage_instances: [], guild_scheduled_events: [], soundboard_sounds: [], members: [member(BOT)],
  member_count: members.size, large: true, unavailable: false, joined_at: "2026-01-01T00:00:00.000000+00:00",
  afk_timeout: 300, afk_channel_id: null, verification_level: 0, default_message_notifications: 0, explicit_content_filter: 0, mfa_level: 0, nsfw_level: 0,
  premium_tier: 0, premium_subscription_count: 0, preferred_locale: "pl", system_channel_id: null, system_channel_flags: 0, rules_channel_id: null,
  public_updates_channel_id: null, application_id: null, vanity_url_code: null, premium_progress_bar_enabled: false, safety_alerts_channel_id: null,
});

const server = createServer((request, response) => {
  let text = "";
  request.on("data", (part) => (text += part));
  request.on("end", () => {
    const path = request.url.replace(/^\/api(\/v\d+)?/, "");
    const send = (status, body) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
    if (path === "/gateway/bot" || path === "/gateway") {
      return send(200, { url: address.replace("http", "ws"), shards: 1, session_start_limit: { total: 1000, remaining: 1000, reset_after: 0, max_concurrency: 1 } });
    }
    if (path === "/oauth2/applications/@me") return send(200, { id: BOT, name: "bot", icon: null, description: "", bot_public: true, bot_require_code_grant: false, verify_key: "0", flags: 0, owner: user(BOT), rpc_origins: [], summary: "" });
    if (path === "/users/@me") return send(200, user(BOT));
    if (path === `/channels/${CHANNEL}` && request.method === "GET") return send(200, channel);
    if (path.startsWith("/channels/") && request.method === "GET") return send(404, { message: "Unknown Channel", code: 10003 });
    if (path === `/channels/${CHANNEL}/messages` && request.method === "POST") {
      const { content, allowed_mentions } = JSON.parse(text);
      console.log("said " + JSON.stringify({ content, mentions: allowed_mentions?.parse }));
      return send(200, { id: "1000000000000000009", channel_id: CHANNEL, content, author: user(BOT), timestamp: "2026-01-01T00:00:00.000000+00:00", edited_timestamp: null,
        tts: false, mention_everyone: false, mentions: [], mention_roles: [], attachments: [], embeds: [], pinned: false, type: 0 });
    }
    console.log(`did ${request.method} ${path}`);
    send(404, { message: "Unknown", code: 0 });
  });
});

const sockets = new Set();
new WebSocketServer({ server }).on("connection", (socket, request) => {
  let sequence = 0;
  const compressed = request.url.includes("zlib-stream");
  const push = (op, d, t) => {
    const text = JSON.stringify({ op, d, t: t ?? null, s: t ? ++sequence : null });
    socket.send(compressed ? stream.write(text) : text);
  };
  const stream = compressed && zlibStream();
  socket.push = push;
  push(10, { heartbeat_interval: 30_000 });
  socket.on("message", (data) => {
    const { op, d } = JSON.parse(data);
    if (op === 1) push(11, null);
    if (op === 6) push(9, false); // a session is never resumed
    if (op === 2) {
      sockets.add(socket);
      push(0, { v: 10, user: user(BOT), guilds: [{ id: GUILD, unavailable: true }], session_id: "s", resume_gateway_url: address.replace("http", "ws"),
        application: { id: BOT, flags: 0 }, private_channels: [], relationships: [], shard: [0, 1] }, "READY");
      push(0, guild(), "GUILD_CREATE");
    }
    if (op === 8) push(0, { guild_id: GUILD, members: [...members].map(member), chunk_index: 0, chunk_count: 1, not_found: [], nonce: d.nonce }, "GUILD_MEMBERS_CHUNK");
  });
  socket.on("close", () => sockets.delete(socket));
});

// zlibStream compresses each text into a message of one stream, as the gateway does.
function zlibStream() {
  let first = true;
  return {
    write(text) { // stored blocks with a sync flush end, so each message stands alone in the stream
      const out = deflateSync(text, { finishFlush: constants.Z_SYNC_FLUSH, level: 0 });
      const body = first ? out : out.subarray(2); // one header for all
      first = false;
      return body;
    },
  };
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const [command, id] = line.split(" ");
  if (command === "join") {
    members.add(id);
    for (const socket of sockets) socket.push(0, { ...member(id), guild_id: GUILD }, "GUILD_MEMBER_ADD");
  }
  if (command === "meet") members.add(id); // while nobody is told of it
  if (command === "again") for (const socket of sockets) socket.close(4000);
}).on("close", () => process.exit());

let address;
server.listen(0, "127.0.0.1", () => {
  address = `http://127.0.0.1:${server.address().port}`;
  console.log(address);
});
