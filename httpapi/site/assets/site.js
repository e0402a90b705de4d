// What pages do better with JavaScript. Everything works without it.
'use strict';

document.documentElement.classList.add('js');

// Buttons that copy an id. Without the clipboard of a secure page, the browser's old command copies a selection.
for (const button of document.querySelectorAll('button[data-copy]')) {
  const words = button.querySelector('span'), label = words.textContent;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
    } catch {
      getSelection().selectAllChildren(button.closest('.ident').querySelector('.id'));
      document.execCommand('copy');
    }
    words.textContent = 'Skopiowano';
    button.classList.add('done');
    setTimeout(() => {
      words.textContent = label;
      button.classList.remove('done');
    }, 2000);
  });
}

// A page may come from a cache that outlives the registry's connection to its data. Last-Modified, which
// the browser tells us as document.lastModified, is when the data was last known to be complete.
(() => {
  const stale = document.getElementById('nieaktualne');
  const asOf = new Date(document.lastModified);
  if (!stale || !stale.hidden || !(Date.now() - asOf > 60_000)) return;
  const words = { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' };
  document.getElementById('stan').textContent = asOf.toLocaleString('pl-PL', words) + ' UTC';
  stale.hidden = false;
})();

// Times are the reader's own. Without JavaScript they are of UTC, and say so where there is an hour.
function showLocalTimes(within) {
  for (const time of within.querySelectorAll('time[data-local]')) {
    const words = { dateStyle: 'long', ...(time.dataset.local === 'date' ? {} : { timeStyle: time.dataset.local === 'second' ? 'medium' : 'short' }) };
    time.textContent = new Date(time.dateTime).toLocaleString('pl-PL', words);
  }
}
showLocalTimes(document);

// A print says where the page was and when it was printed.
{
  const [address, moment] = ['[data-address]', '[data-printed]'].map(s => document.querySelector(s));
  const fill = () => {
    if (address) address.textContent = location.origin + location.pathname;
    if (moment) moment.textContent = new Date().toLocaleString('pl-PL', { dateStyle: 'long', timeStyle: 'short' });
  };
  fill();
  addEventListener('beforeprint', fill);
}

// Addresses without what goes without saying are easier to read and to share.
for (const form of document.querySelectorAll('form.find')) {
  const usual = { sort: 'newest', status: 'all', proofs: 'all', search: '' };
  form.addEventListener('submit', () => {
    for (const field of form.elements) {
      if (field.name in usual && field.value.trim() === usual[field.name]) field.disabled = true;
    }
  });
  addEventListener('pageshow', () => {
    for (const field of form.elements) field.disabled = false;
  });
}
