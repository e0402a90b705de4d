// node ranges.mjs ID…
import { createHash } from "node:crypto";

const API = "https://registry.example/api";
const KEEP = 30; // s: tyle pamiętamy zakres
const FRESH = 300; // s: starsze dane to „nie wiadomo”
const ranges = new Map(); // lokalna lista: prefiks → zakres

async function get(path, headers) {
  const answer = await fetch(API + path, {
    headers,
    signal: AbortSignal.timeout(5000),
  });
  if (answer.status !== 200 && answer.status !== 304) {
    throw Error(`${path}: ${answer.status} ${answer.headers.get("Registry-Error") ?? ""}`);
  }
  const asOf = Date.parse(answer.headers.get("Registry-As-Of"));
  if (!(Math.abs(Date.now() - asOf) < FRESH * 1000)) throw Error(`${path}: stare dane`);
  return answer;
}

async function range(prefix) {
  let kept = ranges.get(prefix);
  if (kept && performance.now() - kept.at < KEEP * 1000) return kept;
  const answer = await get(
    `/ranges/${prefix}`,
    kept ? { "If-None-Match": kept.tag } : {},
  );
  const lines = answer.status === 304 ? (kept?.lines ?? "") : await answer.text();
  // Cały zakres ma 32, 48, 64, 96… wierszy po 30 bajtów; inny jest ucięty.
  const count = (lines.length / 30).toString(2);
  if (!/^([0-9a-f]{26}:[0-9a-f]{2}\n)+$/.test(lines) || !/^11?0{4,}$/.test(count)) throw Error(`${prefix}: nie cały zakres`);
  kept = {
    at: performance.now(),
    lines,
    tag: answer.headers.get("ETag"),
    sequence: answer.headers.get("Registry-Sequence"),
  };
  ranges.set(prefix, kept);
  return kept;
}

async function check(id) {
  try {
    // Liczba to też zgubiona wartość: tak długich JavaScript nie trzyma dokładnie.
    if (typeof id !== "string" || !/^[0-9]{15,20}$/.test(id)) throw Error("zgubiona wartość");
    const hash = createHash("sha256").update("registry-id-v1\n" + id).digest("hex");
    const { lines, sequence } = await range(hash.slice(0, 3));
    const suffix = hash.slice(3, 29);
    const line = lines.split("\n").find((l) => l.startsWith(suffix));
    const bits = line ? parseInt(line.slice(27), 16) : 0;
    if ((bits & 0x0f) === 0) return "brak wpisu"; // nikt albo osoba zaufana
    // Dopiero teraz pada ID, i to tylko kogoś, kto jest na liście. Odpowiedź
    // ma być co najmniej tak nowa jak zakres.
    const answer = await get(`/check?id=${id}`, { "Registry-Min-Sequence": sequence });
    const { results } = await answer.json();
    const accused = results
      .filter(({ kind }) => kind === "scammers" || kind === "servers")
      .flatMap(({ entries }) => entries);
    if (accused.some(({ verified }) => verified)) return "ostrzeż";
    return accused.length > 0 ? "powiadom moderatora" : "brak wpisu";
  } catch (error) { // 503, stare dane, brak odpowiedzi; co dokładnie, mówi powód
    console.error(id, error.message, error.cause?.code ?? "");
    return "nie wiadomo";
  }
}

for (const id of process.argv.slice(2)) console.log(id, await check(id));
