// Mówi moderatorom, kto z serwera jest na liście oszustów, i kiedy z niej znika. Sam nikogo nie
// banuje i nie wyrzuca.
//   npm install discord.js@14
//   DISCORD_TOKEN=… CHANNEL=<ID kanału moderatorów> node discordbot.mjs
// W ustawieniach bota włącz „Server Members Intent”. Na kanale bot musi móc pisać.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Events, GatewayIntentBits } from "discord.js";

const SITE = "https://registry.example";
const AGAIN = 30; // s: po tylu ponawia, jeśli rejestr nie powie inaczej
const FRESH = 300; // s: starsze dane to „nie wiadomo”
const FILE = "powiedziane.json"; // co już powiedział: ID → { verdict, pages }
const WORDS = {
  "ostrzeż": "🛑 Potwierdzone zgłoszenie: %s jest na liście oszustów.",
  "powiadom moderatora": "⚠️ Niesprawdzone zgłoszenie: %s. To nie dowód: nie banuj za samo zgłoszenie.",
  "nie wiadomo": "❔ Nie udało się sprawdzić: %s (%p). Ponawiam. To nie znaczy „czysto”.",
  "już wiadomo": "ℹ️ Udało się sprawdzić, brak wpisu: %s. To nie gwarancja.",
  "brak wpisu": "ℹ️ Brak wpisu: %s (wcześniej: „%p”). Kto ma karę za wpis, może wrócić. To nie gwarancja.",
};

const client = new Client({ intents: [GatewayIntentBits.Guilds, GatewayIntentBits.GuildMembers] });
const told = existsSync(FILE) ? JSON.parse(readFileSync(FILE, "utf8")) : {};
const changed = new Set(); // ID ze zmian: pyta o nie wprost, bo zakres może być sprzed zmiany
let channel, feed; // feed: { epoch, since, checked }, miejsce w zmianach
let kept = {}; // ostatni zakres

// get zwraca odpowiedź rejestru. 503, 429, stare dane i brak odpowiedzi to wyjątki: „nie wiadomo”.
async function get(path, { sequence, seconds = 5 } = {}) {
  const headers = sequence ? { "Registry-Min-Sequence": String(sequence) } : {};
  const answer = await fetch(SITE + path, { headers, signal: AbortSignal.timeout(seconds * 1000) });
  const { status } = answer;
  if (status !== 200) {
    const text = `${path}: ${status} ${answer.headers.get("Registry-Error") ?? ""}`;
    const wait = answer.headers.get("Retry-After");
    throw Object.assign(Error(text.trim()), { status, wait: /^\d{1,9}$/.test(wait) ? Math.min(Math.max(wait, 1), 300) : AGAIN });
  }
  const asOf = Date.parse(answer.headers.get("Registry-As-Of"));
  if (!(Math.abs(Date.now() - asOf) < FRESH * 1000)) throw Error(`${path}: stare dane`);
  return answer;
}

const hashOf = (id) => createHash("sha256").update("registry-id-v1\n" + id).digest("hex");

// listed mówi z zakresu, czy ktoś taki jest na liście. Rejestr nie dowiaduje się, o kogo chodzi.
async function listed(id, sequence) {
  const hash = hashOf(id);
  const prefix = hash.slice(0, 3);
  if (kept.prefix !== prefix || kept.sequence < sequence || performance.now() - kept.at > 30_000) {
    const answer = await get(`/api/ranges/${prefix}`);
    const lines = await answer.text();
    // Cały zakres ma 32, 48, 64, 96… wierszy po 30 bajtów; inny jest ucięty.
    const count = (lines.length / 30).toString(2);
    if (!/^([0-9a-f]{26}:[0-9a-f]{2}\n)+$/.test(lines) || !/^11?0{4,}$/.test(count)) throw Error(`zakres ${prefix}: nie cały`);
    const at = performance.now();
    kept = { prefix, lines, at, sequence: Number(answer.headers.get("Registry-Sequence")) };
  }
  if (kept.sequence < sequence) throw Error(`zakres ${prefix}: stary`);
  const line = kept.lines.split("\n").find((l) => l.startsWith(hash.slice(3, 29)));
  return line !== undefined && (parseInt(line.slice(27), 16) & 0x0f) !== 0; // bez 0f: nikt albo zaufany
}

// look mówi, co rejestr wie o koncie.
async function look(id, sequence = 0) {
  if (!changed.has(id) && !(await listed(id, sequence))) return { verdict: "brak wpisu", pages: [] };
  const newest = Math.max(sequence, kept.sequence ?? 0, feed?.since ?? 0);
  const { results } = await (await get(`/api/check?id=${id}`, { sequence: newest })).json();
  const accused = results
    .filter(({ kind }) => kind === "scammers" || kind === "servers")
    .flatMap(({ kind, entries }) => entries.map(({ _id, verified }) => ({ page: `${kind}/${_id}`, verified })));
  const pages = accused.map(({ page }) => page);
  if (accused.some(({ verified }) => verified)) return { verdict: "ostrzeż", pages };
  return { verdict: pages.length > 0 ? "powiadom moderatora" : "brak wpisu", pages };
}

// tell pisze do moderatorów, jeśli od ostatniego razu coś się zmieniło. Bez nazwy: wybiera ją oszust.
async function tell(id, { verdict, pages, why }) {
  const before = told[id]?.verdict ?? "brak wpisu";
  if (verdict !== before) {
    const now = verdict === "brak wpisu" && before === "nie wiadomo" ? "już wiadomo" : verdict;
    const text = WORDS[now].replace("%s", `<@${id}> (\`${id}\`)`).replace("%p", why ?? before);
    const link = pages.length > 0 ? `${SITE}/wpis/${pages[0]}` : `${SITE}/?search=${id}`;
    await channel.send({ content: `${text}\n${link}`, allowedMentions: { parse: [] } });
  }
  if (verdict === "brak wpisu") delete told[id];
  else told[id] = { verdict, pages };
  writeFileSync(FILE + ".nowy", JSON.stringify(told));
  renameSync(FILE + ".nowy", FILE);
}

// inTurn robi jedno naraz, żeby starsza odpowiedź nie trafiła za nowszą.
let queue = Promise.resolve();
const inTurn = (work) => (queue = queue.then(work, work));

// reason mówi, co się nie udało. „fetch failed” ma przyczynę osobno.
const reason = ({ message, cause }) => (cause ? `${message}: ${cause.code ?? cause.message}` : message);

// patiently ponawia, aż się uda.
async function patiently(work, failed = () => {}) {
  for (;;) {
    try {
      return await inTurn(work);
    } catch (error) {
      console.error(reason(error));
      await inTurn(() => failed(reason(error))).catch(console.error);
      await sleep((error.wait ?? AGAIN) * 1000);
    }
  }
}

// joined sprawdza kogoś, kto wszedł. Gdy się nie da, mówi to i ponawia.
function joined({ id, guild }) {
  if (guild.id !== channel?.guildId) return;
  const unknown = (why) => told[id] ?? tell(id, { verdict: "nie wiadomo", pages: [], why });
  patiently(async () => tell(id, await look(id)), unknown);
}

// begin sprawdza wszystkich, którzy są na serwerze albo byli na liście, i zaczyna śledzić zmiany.
async function begin() {
  const { epoch, sequence } = await (await get("/api/changes")).json();
  const now = (feed = { epoch, since: sequence, checked: false });
  const members = await channel.guild.members.fetch();
  const ids = new Set([...members.keys(), ...Object.keys(told)]);
  const sorted = [...ids].map((id) => [hashOf(id), id]).sort(); // każdy zakres pobiera raz
  for (const [, id] of sorted) await patiently(async () => tell(id, await look(id, sequence)));
  now.checked = true;
}

// take przyjmuje zmianę na liście: mówi o kimś, kto jest na serwerze albo o kim już mówił.
async function take({ seq, op, list, _id, entry }) {
  const page = `${list}/${entry?._id ?? _id}`;
  const ids = new Set(Object.keys(told).filter((id) => told[id].pages.includes(page)));
  if (op === "set" && list !== "legit") {
    changed.add(entry.id);
    if (entry.id in told || channel.guild.members.cache.has(entry.id)) ids.add(entry.id);
  }
  for (const id of ids) {
    changed.add(id);
    await tell(id, await look(id, seq));
  }
}

async function follow() {
  for (;;) {
    try {
      while (!feed?.checked) await begin();
      const now = feed;
      const page = `/api/changes/${now.epoch}?since=${now.since}&wait=25`;
      const { changes, until } = await (await get(page, { seconds: 40 })).json();
      for (const change of changes) await inTurn(() => take(change));
      now.since = until;
    } catch (error) {
      console.error(reason(error));
      if (error.status === 410) feed = null; // inna historia: wszystkich od nowa
      await sleep((error.wait ?? AGAIN) * 1000);
    }
  }
}

client.on(Events.GuildMemberAdd, joined);
client.on(Events.ShardReady, () => (feed = null)); // po przerwie: ktoś mógł wejść
client.once(Events.ClientReady, async () => {
  channel = await client.channels.fetch(process.env.CHANNEL).catch(() => null);
  if (!channel?.guild) {
    console.error(`CHANNEL=${process.env.CHANNEL}: bot nie widzi takiego kanału serwera`);
    process.exit(1);
  }
  follow();
});
client.login(process.env.DISCORD_TOKEN);
