// What /api does better with JavaScript. Without it the links and forms lead to the answers themselves.
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

// copied puts the text of an element on the clipboard. Where the browser gives no page its clipboard, as without TLS, it selects the
// text and lets the browser copy what is selected.
async function copied(e) {
  try {
    await navigator.clipboard.writeText(e.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(e);
    return document.execCommand('copy');
  }
}

for (const button of document.querySelectorAll('[data-copy-code]')) {
  button.hidden = false;
  button.setAttribute('aria-live', 'polite');
  button.addEventListener('click', async () => {
    button.firstChild.data = await copied(button.parentElement.querySelector('code')) ? 'Skopiowano' : 'Zaznaczono';
    setTimeout(() => { button.firstChild.data = 'Kopiuj'; }, 2000);
  });
}
