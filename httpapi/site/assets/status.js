// What /status does better with JavaScript. Without it the status is as old as the page says.
'use strict';

// The status asks again by itself while somebody looks, until they stop it.
const fresh = document.querySelector('[data-fresh]');
{
  const every = 15_000;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'second';
  const live = document.querySelector('.refresh');
  live.append(button);
  let timer;
  const again = async () => {
    if (document.hidden) return;
    try {
      const page = new DOMParser().parseFromString(await (await fetch(fresh.dataset.fresh)).text(), 'text/html');
      const news = page.querySelector('[data-fresh]');
      if (!news) return;
      const [was, is] = [fresh, news].map(e => e.querySelector('.banner'));
      if (was.textContent === is.textContent) is.replaceWith(was); // not to be read out again
      fresh.replaceChildren(...news.childNodes);
      showLocalTimes(fresh);
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
