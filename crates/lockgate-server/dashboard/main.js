// The dashboard: ties the news (live.js), what was seen of them (history.js) and the views together, and routes by the hash.
//
// A view is a function `(path, state) → { node, update(state), leave?(), focus?(), target?, needsNews? }`. It is made when it is shown and
// dropped when it is left; `update` is called with every overview and every change of the connection.
//
// Names for tests: every control has a `data-test`. They are part of the page's contract; <kind> is coupon, deal or sku, an
// article of a group is called <group>/<id>.
//
//   frame      brand nav-overview nav-stock nav-lines nav-locks nav-ledger nav-log nav-create · skip · connection (data-state:
//              connecting, live, reconnecting, locked) · token-button · theme-toggle · server-version · announcer
//   dialogs    token-dialog token-input token-submit token-cancel token-error · confirm-dialog confirm-yes confirm-no ·
//              edit-dialog edit-cancel · toast toast-title toast-detail toast-dismiss
//   overview   light-store light-ledger light-audit (data-tone; …-text) · total-grants-rate total-granted total-remaining
//              total-refused total-waiting total-locks · chart-pulse · overview-campaigns overview-lines ·
//              overview-<kind>-<id> overview-line-<id> · all-stock all-lines all-log
//   stock      stock-filter stock-show-all · stock-kind-all stock-kind-<kind> · stock-cards · <kind>-<id> (data-state) and
//              <kind>-<id>-remaining -state -granted -held -rate -sellout -window -chart -rejections -edit;
//              coupons and deals: -line -pause -resume -close
//   lines      line-cards · line-<id> (data-state) and line-<id>-waiting -state -terms -rate -active -p50 -p99 -abandoned
//              -no-shows -chart -pause -resume -edit -close -forget -admit -admit-count
//   locks      lock-lookup-input lock-lookup-submit · lock-table · lock-<key> and lock-<key>-held -fence -lease -waiting
//              -release
//   ledger     ledger-lag ledger-written ledger-dead-letters ledger-dead-light ledger-audit ledger-audit-light · chart-lag ·
//              copy-audit copy-recover copy-export copy-serve · dead-letters-list dead-letters-replay dead-letters-table
//              dead-letters-more · dead-letter-<id> and dead-letter-<id>-replay -discard
//   create     create-kind-<what> · create-<what>-form -submit -error · create-<what>-<field> and …-<field>-error, the fields of
//              the contract (create-coupon-id, create-coupon-quantity, create-line-every_ms, with create-line-every_ms-unit);
//              <what> is coupon, deal, line or sku. The dialog to edit has the same with edit- for create-, without id and group
//              · create-curl
//   log        log-table log-row log-alone
//   anywhere   empty · empty-create-coupon empty-create-deal empty-create-sku empty-create-line · more ·
//              loading unlock

import { afterwards } from './actions.js';
import { forgetToken, look, token, tryToken, useToken } from './api.js';
import { askForToken, confirm, tell, toast } from './dialogs.js';
import { attr, button, h, say } from './dom.js';
import { words } from './format.js';
import { History } from './history.js';
import { connect } from './live.js';
import { empty } from './parts.js';
import { create } from './views/create.js';
import { ledger } from './views/ledger.js';
import { lines } from './views/lines.js';
import { locks } from './views/locks.js';
import { log } from './views/log.js';
import { overview } from './views/overview.js';
import { stock } from './views/stock.js';

const VIEWS = {
  overview: ['Overview', overview], stock: ['Stock', stock], lines: ['Lines', lines], locks: ['Locks', locks],
  ledger: ['Ledger', ledger], log: ['Audit log', log], create: ['Create', create],
};
const CONNECTION = {
  connecting: ['Connecting', 'The first attempt is under way.'],
  live: ['Live', 'The news come in once a second.'],
  reconnecting: ['Reconnecting', 'The server does not answer; it is tried again by itself. Press to try now.'],
  locked: ['Needs a token', 'The server wants a token. Press to enter it.'],
};

const main = document.getElementById('main');
const state = { history: new History(), connection: 'connecting' };
let view = null;

// ---- what is shown -------------------------------------------------------------------------------------------------------

function route({ moved = true } = {}) {
  const [name, ...rest] = location.hash.slice(1).split('/').map(decoded);
  const [title, make] = VIEWS[name] ?? VIEWS.overview;
  view?.leave?.();
  view = make(rest, state);
  for (const link of document.querySelectorAll('[data-view]')) attr(link, 'aria-current', link.dataset.view === (VIEWS[name] ? name : 'overview') && 'page');
  say(document.getElementById('title'), title);
  document.title = `${title} · Lockgate`;
  main.replaceChildren();
  draw();
  if (!moved) return;
  window.scrollTo(0, 0);
  if (view.target) pointOut(view.target);
  else view.focus?.();
  announce(title);
}

const decoded = (part) => { try { return decodeURIComponent(part); } catch { return part; } };

function draw() {
  if (!state.history.overview && view.needsNews !== false) {
    main.replaceChildren(waiting[state.connection] ?? waiting.connecting);
    return;
  }
  if (!view.node.isConnected) main.replaceChildren(view.node);
  if (state.history.overview) view.update(state);
}

const waiting = {
  connecting: h('p.loading.muted', { test: 'loading' }, 'Waiting for the first news …'),
  reconnecting: empty('The server does not answer', 'It is tried again by itself. Is it running, and the network up?'),
  locked: empty('This server wants a token', 'The app token to look, the admin token to look and to act.', button('Enter a token', 'unlock', () => unlock(), 'primary')),
};

/** Brings what a link meant into view, as soon as the news tell of it. */
function pointOut(target, patience = 12) {
  const node = main.querySelector(`[data-test="${CSS.escape(target)}"]`);
  if (!node) {
    const waiting = view;
    if (patience) setTimeout(() => { if (view === waiting) pointOut(target, patience - 1); }, 250);
    return;
  }
  node.scrollIntoView({ block: 'start' });
  node.focus({ preventScroll: true });
  node.classList.add('pointed');
  node.addEventListener('animationend', () => node.classList.remove('pointed'), { once: true });
}

function announce(text) { say(document.getElementById('announcer'), text); }

// ---- the news ------------------------------------------------------------------------------------------------------------

function take(news) {
  const changes = state.history.take(news);
  if (changes.length) announce(changes.slice(0, 3).map(([name, now]) => `${name} is now ${now.replaceAll('-', ' ')}`).join('. '));
  say(document.getElementById('server'), `${news.server.version} · ${news.server.persistence}`);
  attr(document.getElementById('server'), 'title', news.server.store);
  if (!document.hidden) draw();
}

let asked = false;

function connectionIs(next, problem) {
  if (next === state.connection && next !== 'locked') return;
  state.connection = next;
  const badge = document.getElementById('connection');
  const [text, hint] = CONNECTION[next];
  attr(badge, 'data-state', next);
  attr(badge, 'title', hint);
  say(badge.lastElementChild, text);
  announce(text);
  draw();
  if (next === 'locked') locked(problem);
}

/** Asks once by itself; whoever says no finds the way back in the badge. */
async function locked() {
  if (token()) { asked = false; forgetToken(); return; }
  if (asked) return;
  asked = true;
  await unlock();
}

async function unlock(refused = null) {
  const given = await askForToken({ admin: false, refused });
  if (!given) return;
  try {
    take(await tryToken('/v1/overview', given));
  } catch (why) {
    if (why.status === 401) await unlock('given');
    else tell(why);
  }
}

// ---- the frame -----------------------------------------------------------------------------------------------------------

function tokenShown() {
  const node = document.getElementById('token');
  attr(node, 'data-set', Boolean(token()));
  attr(node, 'aria-label', token() ? 'Forget the token' : 'Enter a token');
  attr(node, 'title', token() ? 'A token is kept for this tab. Press to forget it.' : 'Enter a token');
  say(node.lastElementChild, token() ? 'Forget token' : 'Token');
}

function themeShown(theme) {
  const node = document.getElementById('theme');
  attr(node, 'aria-label', `Theme: ${theme}`);
  attr(node, 'title', `Theme: ${theme}. Press for the next.`);
  say(node.lastElementChild, words(theme));
}

useToken({ ask: askForToken, changed: () => { tokenShown(); live.again(); } });
afterwards(() => look('/v1/overview').then(take).catch(() => { /* The stream tells it in a second, too. */ }));
document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
document.getElementById('theme').addEventListener('click', () => themeShown(window.nextTheme()));
document.getElementById('connection').addEventListener('click', () => { if (state.connection === 'locked') unlock(); else if (state.connection !== 'live') live.again(); });
document.getElementById('token').addEventListener('click', async () => {
  if (!token()) { await unlock(); return; }
  if (!await confirm('Forget the token?', 'The next action asks for it again.', 'Forget token')) return;
  forgetToken();
  toast('The token is forgotten');
});
window.addEventListener('hashchange', () => route());
window.addEventListener('unhandledrejection', ({ reason }) => tell(reason));
document.addEventListener('visibilitychange', () => { if (!document.hidden && view) draw(); });

themeShown(document.documentElement.dataset.theme);
tokenShown();
route({ moved: Boolean(location.hash) });
const live = connect({ onOverview: take, onState: connectionIs });
