// Trzyma w przeglądarce kopię wszystkich list i mówi, do jakiej chwili jest kompletna.
const API = "https://registry.example/api/changes";
const AGAIN = 5; // s: po tylu ponawia
const copy = new Map(); // lista/_id → wpis
let asOf = 0; // kompletna do tej chwili; 0, póki nie wiadomo

async function follow() {
  for (let epoch, since; ; ) {
    try {
      const answer = await fetch(API, { cache: "no-store" });
      if (!answer.ok) throw Error(`${answer.status} ${answer.headers.get("Registry-Error")}`);
      const now = await answer.json();
      if (now.epoch !== epoch || since < now.oldest) { // pierwszy raz albo inna historia: od nowa
        copy.clear();
        [epoch, since, asOf] = [now.epoch, 0, 0];
      }
      await new Promise((ended) => {
        const events = new EventSource(`${API}/${epoch}/events?since=${since}`);
        const take = ({ type, data, lastEventId }) => {
          const { list, _id, entry, asOf: complete } = JSON.parse(data);
          if (type === "set") copy.set(`${list}/${entry._id}`, entry);
          if (type === "remove") copy.delete(`${list}/${_id}`);
          if (type === "tick") asOf = Date.parse(complete);
          since = Number(lastEventId);
        };
        for (const type of ["set", "remove", "tick"]) events.addEventListener(type, take);
        // Po zerwaniu EventSource łączy się znowu sam. Po odpowiedzi innej niż 200 kończy na
        // zawsze i nie mówi, jaka była: potrzebny jest nowy, a powód poda następne zapytanie.
        events.onerror = () => events.readyState === EventSource.CLOSED && ended();
      });
    } catch (error) {
      console.error(`${API}: ${error.message}`);
    }
    await new Promise((again) => setTimeout(again, AGAIN * 1000));
  }
}
follow();
