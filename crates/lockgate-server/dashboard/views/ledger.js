// Ledger: is everything that was decided also written down, and what to do when it is not.

import { chart } from '../charts.js';
import { command } from '../dialogs.js';
import { h, say, show } from '../dom.js';
import { span, words } from '../format.js';
import { empty, pill } from '../parts.js';
import { deadLetters } from './dead_letters.js';

const AUDIT = {
  green: 'Granted = persisted + in flight + dead-lettered, for every campaign.',
  yellow: 'Nothing is lost, but dead letters wait for somebody to look at them.',
  red: 'Something is missing or was decided twice. The command says which campaign, and which of the two.',
  unknown: 'The ledger has not been audited yet, or the audit cannot read it at the moment. It is tried every 15 seconds.',
};

export function ledger() {
  const [lag, lagNote, audit, auditNote] = [h('strong', { test: 'ledger-lag' }), h('p.muted'), h('strong', { test: 'ledger-audit' }), h('p.muted')];
  const lights = { lag: pill('ledger-written'), audit: pill('ledger-audit-light') };
  const dead = deadLetters();
  const behind = chart({ test: 'chart-lag', height: 120, unit: ' ms', series: [{ field: 'behind', name: 'Behind', tone: 'water' }] });
  const part = (title, light, big, ...more) => h('section.panel', {}, h('div.panel-head', {}, h('h2', {}, title), light.node), h('p.big', {}, big), ...more);
  const filled = h('div.stack', {},
    h('div.columns.three', {},
      part('Lag', lights.lag, lag, lagNote,
        h('p.small.muted', {}, 'Age of the oldest decision that is not in the database yet. Decisions never wait for the ledger: a rush makes it grow, and it catches up afterwards.')),
      dead.panel,
      part('Audit', lights.audit, audit, auditNote,
        command('lockgate audit', 'copy-audit'),
        h('p.small.muted', {}, 'If the store has forgotten what the ledger knows:'),
        command('lockgate recover', 'copy-recover'))),
    dead.table,
    h('section.panel', {}, h('div.panel-head', {}, h('h2', {}, 'Lag since this page was opened'), h('span.muted', {}, 'milliseconds')), behind.node),
    h('section.panel', {}, h('div.panel-head', {}, h('h2', {}, 'Who has what')), h('p.muted', {}, 'The rows of a campaign, as CSV or as JSON lines:'),
      command('lockgate ledger export coupon <id>', 'copy-export'),
      h('p.small.muted', {}, 'The commands read LOCKGATE_STORE and LOCKGATE_LEDGER, or --store and --ledger.')));
  const none = empty('This server keeps no ledger', 'Grants are kept by the store and its journal. With a ledger, each of them also becomes exactly one row in SQLite, PostgreSQL or MySQL, and an audit compares the two all the time.',
    command('lockgate serve --ledger sqlite:ledger.db', 'copy-serve'));
  return {
    node: h('div.stack', {}, none, filled),
    update({ history }) {
      const told = history.overview.ledger;
      show(none, !told);
      show(filled, told);
      if (!told) return;
      say(lag, span(told.behind_ms));
      lights.lag.update(told.is_written ? (told.behind_ms < 5000 ? 'green' : told.behind_ms < 60000 ? 'yellow' : 'red') : 'red', told.is_written ? 'Writing' : 'Failing');
      say(lagNote, told.is_written ? 'The database takes what it is given.' : 'The last write failed and is tried again. The journal keeps everything until then; the server\u2019s log says why.');
      dead.update(told.dead_letters);
      say(audit, words(told.audit));
      lights.audit.update(told.audit);
      say(auditNote, AUDIT[told.audit] ?? '');
      behind.update(history.samples('ledger'), { label: `Ledger lag: ${span(told.behind_ms)}` });
    },
  };
}
