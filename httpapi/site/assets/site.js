// What pages do better with JavaScript. Everything works without it.
'use strict';

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
