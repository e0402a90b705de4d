const API = "https://registry.example/api/check?id=";

async function check(id) {
  // Zgubiona wartość. Liczba też: tak długich JavaScript nie trzyma dokładnie.
  if (typeof id !== "string" || !/^[0-9]{15,20}$/.test(id)) return "nie wiadomo";
  try {
    const answer = await fetch(API + encodeURIComponent(id), {
      signal: AbortSignal.timeout(5000),
    });
    if (!answer.ok) return "nie wiadomo"; // 503 i każdy inny błąd
    const { results } = await answer.json();
    const accused = results
      .filter(({ kind }) => kind === "scammers" || kind === "servers")
      .flatMap(({ entries }) => entries);
    if (accused.some(({ verified }) => verified)) return "ostrzeż";
    return accused.length > 0 ? "powiadom moderatora" : "brak wpisu";
  } catch {
    return "nie wiadomo"; // brak odpowiedzi
  }
}

console.log(await check("99016474520097277832"));
