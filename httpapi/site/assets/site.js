// What pages do better with JavaScript. Everything works without it.
'use strict';

document.documentElement.classList.add('js');

const said = document.getElementById('powiedziane'); // what is read out

// Buttons that copy an id. Without the clipboard of a secure page, the browser's old command copies a selection.
for (const button of document.querySelectorAll('button[data-copy]')) {
  const words = button.querySelector('span') ?? button, label = words.textContent;
  const id = button.closest('.ident').querySelector('.id');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(id.textContent);
    } catch {
      getSelection().selectAllChildren(id);
      document.execCommand('copy');
    }
    words.textContent = 'Skopiowano';
    said.textContent = 'Skopiowano ID';
    button.classList.add('done');
    setTimeout(() => {
      words.textContent = label;
      said.textContent = '';
      button.classList.remove('done');
    }, 2000);
  });
}

// Buttons that copy a warning for a chat, with a link that makes it current.
for (const button of document.querySelectorAll('button[data-warning]')) {
  const label = button.textContent;
  button.addEventListener('click', async () => {
    const text = `${button.dataset.warning} ${new URL(button.dataset.link, location.href)}`;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const field = document.createElement('textarea');
      field.value = text;
      button.after(field);
      field.select();
      document.execCommand('copy');
      field.remove();
    }
    button.textContent = 'Skopiowano';
    said.textContent = 'Skopiowano ostrzeżenie z linkiem';
    setTimeout(() => {
      button.textContent = label;
      said.textContent = '';
    }, 2000);
  });
}

// A page that was kept (by a cache, by the way back, by a tab that slept) says so when it is older than a minute. The
// reader's clock only raises the question: the server's answers it, by the Date of any answer. Server-Timing has no time zone
// that a reader's settings could bend. Where a browser hides it there is document.lastModified, which in the hour that a clock
// change repeats means the later one.
async function tellAge() {
  const stale = document.getElementById('nieaktualne');
  const told = performance.getEntriesByType('navigation')[0]?.serverTiming?.find(t => t.name === 'asof');
  let asOf = new Date(told?.description ?? document.lastModified);
  const later = new Date(+asOf + 3_600_000);
  if (!told && later.toLocaleTimeString() === asOf.toLocaleTimeString()) asOf = later;
  if (!stale || !stale.hidden || !(Date.now() - asOf > 60_000)) return;
  let now = Date.now() - 600_000; // where nobody answers: ten minutes that the clock may be wrong by
  try {
    const { headers } = await fetch('/robots.txt', { method: 'HEAD', cache: 'no-store' });
    now = Date.parse(headers.get('Date')) + 1000 * (headers.get('Age') ?? 0);
  } catch { /* as above */ }
  if (!(now - asOf > 60_000)) return;
  const words = { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' };
  document.getElementById('stan').textContent = asOf.toLocaleString('pl-PL', words) + ' UTC';
  stale.hidden = false;
}
tellAge();
document.addEventListener('visibilitychange', () => { if (!document.hidden) tellAge(); });

addEventListener('pageshow', ({ persisted }) => { if (persisted) tellAge(); });

// Who has a keyboard can type at once. On a touch screen one would open over the page.
if (!matchMedia('(pointer: coarse)').matches) document.querySelector('[data-focus]')?.focus({ preventScroll: true });

// Times are the reader's own. Without JavaScript they are of UTC, and say so where there is an hour.
for (const time of document.querySelectorAll('time[data-local]')) {
  const words = { dateStyle: 'long', ...(time.dataset.local === 'date' ? {} : { timeStyle: time.dataset.local === 'second' ? 'medium' : 'short' }) };
  time.textContent = new Date(time.dateTime).toLocaleString('pl-PL', words);
}
