// Audit log: who changed what, and whether it was allowed. Written by the server, newest first; nothing here can be changed.

import { attr, h, keyed, say, show } from '../dom.js';
import { date, time, words } from '../format.js';
import { empty, pill } from '../parts.js';

/** What went well; anything else is the code of a problem. */
const GOOD = /^(done|ok|created|replaced|changed|success|allowed|2\d\d)/;

export function log() {
  const body = h('div', { role: 'rowgroup' });
  const head = h('div.tr.head', { role: 'row' }, ...['When', 'Action', 'Target', 'Outcome', 'From'].map((name) => h('span', { role: 'columnheader' }, name)));
  const list = h('div.table.log', { role: 'table', 'aria-label': 'Admin actions', test: 'log-table' }, head, body);
  const nothing = empty('Nobody has changed anything yet', 'Every admin call is written down here with its outcome and where it came from, also those that were refused.');
  const alone = h('p.small.muted', { test: 'log-alone' }, 'Only what this server has seen since it started: it keeps no ledger, or the ledger does not answer. With one, the calls of all servers are kept in its database.');
  return {
    node: h('div.stack', {}, nothing, list, alone),
    update({ history }) {
      const { actions } = history.overview;
      show(nothing, !actions.length);
      show(list, actions.length);
      keyed(body, actions, ({ id }) => id, row);
      show(alone, !history.overview.actions_of_all);
    },
  };
}

function row({ at, action, target, outcome, address }) {
  const when = h('time', { datetime: at, title: at });
  const verdict = pill();
  const cell = (label, ...children) => h('span', { role: 'cell', 'data-label': label }, ...children);
  const node = h('div.tr', { role: 'row', test: 'log-row' }, cell('When', when), cell('Action', h('b', {}, words(action))), cell('Target', h('code', {}, target)), cell('Outcome', verdict.node), cell('From', h('span.muted', {}, address)));
  verdict.update(GOOD.test(outcome) ? 'green' : 'red', words(outcome));
  return {
    node,
    update() {
      const then = new Date(at);
      const today = then.toDateString() === new Date().toDateString();
      say(when, today ? time(then) : date(then));
      attr(node, 'data-today', today);
    },
  };
}
