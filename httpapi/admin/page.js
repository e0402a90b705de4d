// Fetches the page again every two seconds and takes over the parts that have changed, so that a
// selection or the focus in the others stays. Without scripts the page reloads itself.
"use strict";

const every = 2000;

function takeOver(fresh) {
  document.title = fresh.title;
  document.getElementById("fresh").replaceWith(fresh.getElementById("fresh"));
  const main = document.querySelector("main");
  const sections = [...fresh.querySelectorAll("main > section")];
  const old = [...main.children];
  if (old.map((section) => section.id).join() !== sections.map((section) => section.id).join()) {
    main.replaceChildren(...sections);
    return;
  }
  sections.forEach((section, i) => {
    if (old[i].outerHTML !== section.outerHTML) old[i].replaceWith(section);
  });
}

async function refresh() {
  if (document.hidden) return;
  let trouble = "";
  try {
    const answer = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (answer.ok) takeOver(new DOMParser().parseFromString(await answer.text(), "text/html"));
    else trouble = "status " + answer.status;
  } catch {
    trouble = "no answer";
  }
  if (!trouble) return;
  const note = document.getElementById("fresh");
  note.className = "bad";
  note.textContent = note.textContent.split(" Not refreshed")[0] + " Not refreshed since: " + trouble + ".";
}

(async () => {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, every));
    await refresh();
  }
})();
