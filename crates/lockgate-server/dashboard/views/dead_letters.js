// Dead letters: what could not be written, why, and what to do with each.
//
// They hold users, so they are listed for admins only, and only when somebody asks: the overview tells no more than their number.

import { deadLetters as fetchThem, discardLetter, replayLetter, replayLetters } from '../actions.js';
import { button, h, keyed, say, show } from '../dom.js';
import { count, date } from '../format.js';
import { pill } from '../parts.js';

export function deadLetters() {
  let listed = null;
  const number = h('strong', { test: 'ledger-dead-letters' });
  const light = pill('ledger-dead-light');
  const look = button('List them', 'dead-letters-list', fetchList);
  const all = button('Replay all', 'dead-letters-replay', () => afterwards(replayLetters()), 'primary');
  const buttons = h('div.buttons', {}, look, all);
  const panel = h('section.panel', {}, h('div.panel-head', {}, h('h2', {}, 'Dead letters'), light.node), h('p.big', {}, number),
    h('p.muted', {}, 'Changes that the database or your own sink refused. None is lost: each is kept with its reason. Mend the cause, then replay them.'), buttons);
  const body = h('div', { role: 'rowgroup' });
  const head = h('div.tr.head', { role: 'row' }, ...['Since', 'Change', 'Why', ''].map((name) => h('span', { role: 'columnheader' }, name || h('span.unseen', {}, 'Action'))));
  const more = h('p.more.muted', { test: 'dead-letters-more' });
  const table = h('div.stack', {}, h('div.table.letters', { role: 'table', 'aria-label': 'Dead letters', test: 'dead-letters-table' }, head, body), more);

  async function fetchList() {
    listed = await fetchThem() ?? listed;
    draw();
  }

  async function afterwards(done) { if (await done && listed) await fetchList(); }

  function draw() {
    const letters = listed?.dead_letters ?? [];
    show(table, letters.length);
    keyed(body, letters, ({ id }) => id, (letter) => row(letter, afterwards));
    show(more, listed?.more);
    say(more, listed?.more ? `${count(listed.more)} more; these are the oldest.` : '');
  }

  draw();
  return {
    panel,
    table,
    update(dead) {
      say(number, count(dead));
      light.update(dead ? 'yellow' : 'green', dead ? 'Look at them' : 'None');
      show(buttons, dead);
    },
  };
}

function row(letter, afterwards) {
  const { id, campaign, rev, is_conflict: isConflict, reason, content, at } = letter;
  const test = `dead-letter-${id}`;
  const cell = (label, ...children) => h('span', { role: 'cell', 'data-label': label }, ...children);
  const change = campaign ? [h('b', {}, campaign), h('span.muted', {}, ` change ${rev}`)] : [h('span.muted', {}, 'Not readable')];
  const node = h('div.tr', { role: 'row', test },
    cell('Since', h('time', { datetime: at, title: at }, date(new Date(at)))), cell('Change', ...change),
    cell('Why', h('p', {}, reason), h('code.small', {}, content)),
    // A conflict is refused as often as it is tried: somebody has to decide which of the two is true.
    cell('', !isConflict && campaign && button('Replay', `${test}-replay`, () => afterwards(replayLetter(letter))), ' ',
      button('Discard', `${test}-discard`, () => afterwards(discardLetter(letter)), 'danger')));
  return { node, update() {} };
}
