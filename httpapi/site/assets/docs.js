// What /api and /status do better with JavaScript. Without it the links and forms lead to the answers themselves, and
// the status is as old as the page says.
'use strict';

const told = ['Registry-Sequence', 'Registry-As-Of', 'ETag', 'Cache-Control', 'Retry-After', 'Content-Type'];

function element(name, text, ...children) {
  const e = document.createElement(name);
  e.append(...(text === null ? [] : [text]), ...children);
  return e;
}

// body is the answer as people read it: pictures as pictures, JSON indented, anything else as its text.
async function body(response, address) {
  const kind = response.headers.get('Content-Type') ?? '';
  if (kind.startsWith('image/')) {
    const picture = element('img', null);
    picture.alt = 'Obrazek z odpowiedzi';
    picture.src = response.url;
    return picture;
  }
  let text = await response.text();
  if (kind.startsWith('application/json')) text = JSON.stringify(JSON.parse(text), null, 2);
  const pre = element('pre', text);
  pre.tabIndex = 0;
  pre.setAttribute('role', 'region');
  pre.setAttribute('aria-label', 'Treść odpowiedzi: ' + address);
  return pre;
}

// ask shows the answer: in a line that is read out, and below it what there is to look at.
async function ask(address, into) {
  const [line, rest] = into.children;
  into.hidden = false;
  line.textContent = 'Pytam…';
  rest.replaceChildren();
  try {
    const response = await fetch(address);
    const headers = element('dl', null);
    for (const name of told) {
      const value = response.headers.get(name);
      if (value !== null) headers.append(element('dt', name), element('dd', value));
    }
    const { pathname, search } = new URL(address, location);
    const path = pathname + search;
    rest.replaceChildren(element('code', path), headers, await body(response, path));
    line.textContent = 'Odpowiedź: ' + response.status;
  } catch {
    line.textContent = 'Serwer nie odpowiedział. Spróbuj ponownie.';
  }
}

// filled is the address that the form leads to, without what was left empty.
function filled(form) {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ''));
  return form.action + (query.size ? '?' + query : '');
}

for (const e of document.querySelectorAll('[data-try]')) {
  const into = e.closest('.operation').querySelector('.answer');
  e.addEventListener(e.matches('form') ? 'submit' : 'click', event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    ask(e.matches('form') ? filled(e) : e.href, into);
  });
}

// The status asks again by itself while somebody looks, until they stop it.
const fresh = document.querySelector('[data-fresh]');
if (fresh) {
  const every = 15_000;
  const button = element('button', 'Zatrzymaj odświeżanie');
  button.type = 'button';
  const live = document.querySelector('.refresh');
  live.append(button);
  let timer;
  const again = async () => {
    if (document.hidden) return;
    try {
      const page = new DOMParser().parseFromString(await (await fetch(fresh.dataset.fresh)).text(), 'text/html');
      const news = page.querySelector('[data-fresh]');
      if (!news) return;
      const [was, is] = [fresh, news].map(e => e.querySelector('.lead'));
      if (was.textContent === is.textContent) is.replaceWith(was); // not to be read out again
      fresh.replaceChildren(...news.childNodes);
    } catch { /* the next round may do better; the page says how old it is */ }
  };
  const run = on => {
    clearInterval(timer);
    if (on) timer = setInterval(again, every);
    button.textContent = on ? 'Zatrzymaj odświeżanie' : 'Odświeżaj co 15 sekund';
  };
  let on = true;
  button.addEventListener('click', () => run(on = !on));
  run(on);
}
