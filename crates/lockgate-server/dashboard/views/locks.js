// Locks: who is inside, until when, how many wait; and the last resort, taking one away.
//
// The overview names the locks that were asked for at this server lately. Any other, as those that a Rust program or another server
// takes, can be looked up by name, and is asked for once a second as long as it is shown.

import { look } from '../api.js';
import { breakLock } from '../actions.js';
import { tell } from '../dialogs.js';
import { attr, busy, button, h, keyed, say, show } from '../dom.js';
import { count, plural, span } from '../format.js';
import { bar, empty, pill } from '../parts.js';

const TICK_MS = 200;

export function locks() {
  let pinned = null;
  let news = { locks: [], at: 0 };
  const input = h('input', { type: 'search', id: 'lock-lookup', placeholder: 'Name of a lock', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false', test: 'lock-lookup-input' });
  const send = h('button', { type: 'submit', test: 'lock-lookup-submit' }, 'Look up');
  const form = h('form.tools', { role: 'search' }, h('label.unseen', { for: 'lock-lookup' }, 'Name of a lock'), input, send);
  const list = h('div.table.locks', { role: 'table', 'aria-label': 'Locks', test: 'lock-table' });
  const body = h('div', { role: 'rowgroup' });
  list.append(h('div.tr.head', { role: 'row' }, ...['Name', 'Holder', 'Fence', 'Lease left', 'Waiting', ''].map((name) => h('span', { role: 'columnheader' }, name || h('span.unseen', {}, 'Action')))), body);
  const nothing = empty('No lock was asked for here', 'Locks appear here when somebody asks this server for them. Those of other servers and of programs that use the library can be looked up by name.');

  async function fetchPinned(key) {
    const lock = await look(`/v1/locks/${encodeURIComponent(key)}`);
    if (pinned && pinned.key !== key) return;
    pinned = { ...lock, key, at: Date.now() };
    draw();
  }

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const key = input.value.trim();
    pinned = null;
    if (!key) { draw(); return; }
    busy(send, async () => { try { await fetchPinned(key); } catch (why) { tell(why); } });
  });

  function draw() {
    const others = news.locks.filter(({ key }) => key !== pinned?.key).map((lock) => ({ ...lock, at: news.at }));
    const all = pinned ? [{ ...pinned, isPinned: true }, ...others] : others;
    show(nothing, !all.length);
    show(list, all.length);
    keyed(body, all, ({ key }) => key, row);
  }

  const ticking = setInterval(() => { if (!document.hidden) draw(); }, TICK_MS);
  return {
    node: h('div.stack', {}, form, nothing, list),
    update({ history }) {
      news = { locks: history.overview.locks, at: history.at };
      if (pinned) fetchPinned(pinned.key).catch(() => {});
      draw();
    },
    leave() { clearInterval(ticking); },
  };
}

function row({ key }) {
  const test = `lock-${key}`;
  const [name, fence, left, waiting] = [h('b'), h('code', { test: `${test}-fence` }), h('span', { test: `${test}-lease` }), h('span', { test: `${test}-waiting` })];
  const held = pill(`${test}-held`);
  const owner = h('span.muted', { test: `${test}-owner` });
  const lease = bar(['water']);
  const release = button('Force release', `${test}-release`, () => breakLock(key), 'danger');
  let longest = 1;
  const cell = (label, ...children) => h('span', { role: 'cell', 'data-label': label }, ...children);
  const node = h('div.tr', { role: 'row', test }, cell('Name', name), cell('Holder', held.node, owner), cell('Fence', fence), cell('Lease left', left, lease.node), cell('Waiting', waiting), cell('', release));
  return {
    node,
    update({ held: isHeld, owner: who, fence: highest, lease_left_ms: told, waiting: n, at, isPinned }) {
      const leaseLeft = isHeld && Number.isFinite(told) ? Math.max(0, told - (Date.now() - at)) : undefined;
      longest = Math.max(longest, leaseLeft ?? 0);
      attr(node, 'data-pinned', isPinned);
      say(name, key);
      held.update(isHeld ? 'held' : 'closed', isHeld ? 'Held' : 'Free');
      say(owner, !isHeld ? '' : who ? ` ${who}` : ' not through this server');
      say(fence, String(highest));
      say(left, leaseLeft === undefined ? '–' : span(leaseLeft >= 1000 ? Math.ceil(leaseLeft / 100) * 100 : leaseLeft));
      lease.update([isHeld ? (leaseLeft ?? 0) / longest : 0]);
      say(waiting, n ? count(n) : '–');
      attr(waiting, 'title', n ? plural(n, 'waiter') : null);
      release.disabled = !isHeld;
    },
  };
}
