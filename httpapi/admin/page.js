// Fetches the page every two seconds and replaces the sections that have changed, so that selection and
// focus survive in the others. Without scripts the page reloads itself.
"use strict";

const every = 2000;

function update(fresh) {
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
    if (old[i].outerHTML === section.outerHTML) return;
    const left = old[i].querySelector(".scroll")?.scrollLeft;
    old[i].replaceWith(section);
    if (left) section.querySelector(".scroll")?.scrollTo({ left });
  });
}

async function refresh() {
  if (document.hidden) return;
  let trouble = "";
  try {
    const answer = await fetch("/", { cache: "no-store", signal: AbortSignal.timeout(10000) });
    if (answer.ok) update(new DOMParser().parseFromString(await answer.text(), "text/html"));
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
