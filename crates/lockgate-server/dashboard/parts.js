// Small parts that several views are made of. Each returns `{ node, update }`, or just a node when it never changes.

import { attr, h, say, show } from './dom.js';
import { count, date, plural, relative, words } from './format.js';
import { PENDING } from './history.js';

const TONES = {
  open: 'green', held: 'blue', early: 'blue', drawing: 'blue', scheduled: 'blue', paused: 'yellow', recovering: 'red',
  'sold-out': 'ink', closed: 'grey', green: 'green', yellow: 'yellow', red: 'red', unknown: 'grey',
};

/** What a thing is doing, as a word with a dot. */
export function pill(test) {
  const node = h('span.pill', { test });
  return { node, update(state, text = words(state)) { attr(node, 'data-tone', TONES[state] ?? 'grey'); say(node, text); } };
}

/** A number with its name: the name is read first. */
export function figure(name, test, hint) {
  const value = h('dd', { test }, '–');
  const small = h('dd.figure-note');
  const node = h('div.figure', { title: hint }, h('dt', {}, name), value, small);
  return { node, update(text, note = '') { say(value, text); say(small, note); show(small, note); } };
}

/** A bar of parts of a whole: `update([share, share …])`, each in the tone given. */
export function bar(tones) {
  const parts = tones.map((tone) => h(`i.${tone}`));
  const node = h('div.bar', { 'aria-hidden': 'true' }, ...parts);
  return {
    node,
    update(shares) { parts.forEach((part, i) => { part.style.width = `${(Math.max(0, Math.min(1, shares[i] || 0)) * 100).toFixed(2)}%`; }); },
  };
}

/** Refusals by reason, as quiet chips. */
export function reasons(test) {
  const node = h('ul.reasons', { test, 'aria-label': 'Refusals by reason' });
  return {
    node,
    update(list) {
      const told = JSON.stringify(list);
      if (node.told === told) return;
      node.told = told;
      node.replaceChildren(...list.map(({ code, count: n }) => h('li', { 'data-code': code }, h('span', {}, words(code)), h('b', {}, count(n)))));
    },
  };
}

/** The window of a campaign or the opening of a line, in words. */
export function windowOf({ opens_at: opens, closes_at: closes, state }, now) {
  if (opens && (PENDING.has(state) || Date.parse(opens) > now)) return `Opens ${relative(opens, now)} (${date(opens)})`;
  if (closes && state !== 'closed') {
    return Date.parse(closes) > now ? `Closes ${relative(closes, now)} (${date(closes)})` : `Its window ended ${date(closes)}`;
  }
  return opens ? `Open since ${date(opens)}` : 'No window';
}

/** What to do when there is nothing. */
export function empty(title, text, ...more) {
  return h('div.empty', { test: 'empty' }, h('h3', {}, title), h('p', {}, text), ...more);
}

/** A link that looks like a button. */
export const link = (label, href, test, kind = 'button') => h(`a.${kind}`, { href, test }, label);

/** "… and so many more that are not shown". */
export function moreNote() {
  const node = h('p.more.muted', { hidden: true, test: 'more' });
  return {
    node,
    update(n, one, many) {
      show(node, n > 0);
      if (n > 0) say(node, `${plural(n, one, many)} more not shown here. The command line and the API know them all.`);
    },
  };
}
