// Overview: is everything well, how much is going on, and where?

import { chart, spark } from '../charts.js';
import { attr, h, keyed, say, show } from '../dom.js';
import { count, plural, rate, span, time, words } from '../format.js';
import { KINDS } from '../history.js';
import { bar, empty, figure, link, pill } from '../parts.js';

const SHOWN = 5;
const LAG_YELLOW_MS = 5000;
const LAG_RED_MS = 60000;

export function overview() {
  const lights = { store: light('Store', 'light-store'), ledger: light('Ledger', 'light-ledger', '#ledger'), audit: light('Audit', 'light-audit', '#ledger') };
  const totals = {
    grants: figure('Grants per second', 'total-grants-rate'),
    granted: figure('Granted', 'total-granted'),
    remaining: figure('Remaining', 'total-remaining'),
    refused: figure('Refused', 'total-refused'),
    waiting: figure('Waiting in lines', 'total-waiting'),
    locks: figure('Locks held', 'total-locks'),
  };
  const pulse = chart({
    test: 'chart-pulse', height: 168, unit: '/s',
    series: [{ field: 'grants', name: 'Grants', tone: 'water' }, { field: 'admissions', name: 'Admissions', tone: 'moss' }],
  });
  const campaigns = h('ol.rows', { test: 'overview-campaigns' });
  const lines = h('ol.rows', { test: 'overview-lines' });
  const refusals = h('ol.rows.tight');
  const actions = h('ol.rows.tight');
  const panels = {
    campaigns: panel('Most active campaigns', '#stock', campaigns, 'Nothing is granted at the moment.'),
    lines: panel('Lines', '#lines', lines, 'No lines yet. A line lets a crowd in, so many every so often.'),
    refusals: panel('Refusals by reason, at this server', null, refusals, 'This server has refused nobody since it started.'),
    actions: panel('Last actions', '#log', actions, 'Nobody has changed anything yet.'),
  };
  const start = empty('Open your first gate',
    'A coupon gives one of N to each user, a deal sells stock with a limit, a line lets a crowd in one by one. Create one here, or with a single PUT.',
    h('p.buttons', {}, link('Create a coupon', '#create/coupon', 'empty-create-coupon', 'button.primary'), link('Create a line', '#create/line', 'empty-create-line')));
  const filled = h('div.stack', {},
    h('section.panel', { 'aria-label': 'Pulse' },
      h('div.panel-head', {}, h('h2', {}, 'Pulse'), h('p.legend', {}, h('span.water', {}, 'Grants per second'), h('span.moss', {}, 'Admissions per second'))), pulse.node),
    h('div.columns', {}, panels.campaigns.node, panels.lines.node),
    h('div.columns', {}, panels.refusals.node, panels.actions.node));
  const node = h('div.stack', {},
    h('section.lights', { 'aria-label': 'Lights' }, ...Object.values(lights).map((one) => one.node)),
    h('dl.totals', {}, ...Object.values(totals).map((one) => one.node)), start, filled);

  return {
    node,
    update({ history, connection }) {
      const news = history.overview;
      const sum = (list, of) => list.reduce((all, one) => all + (of(one) || 0), 0);
      const isNew = !history.campaigns.length && !news.lines.length && !news.locks.length;
      show(start, isNew);
      show(filled, !isNew);
      updateLights(lights, news, connection);
      const held = news.locks.filter((lock) => lock.held).length;
      totals.grants.update(rate(sum(history.campaigns, ({ key }) => history.rate(key, 'granted'))));
      totals.granted.update(count(sum(history.campaigns, ({ granted }) => granted)));
      totals.remaining.update(count(sum(history.campaigns, ({ body }) => body.remaining)));
      totals.refused.update(count(sum(news.rejections, (one) => one.count)));
      totals.waiting.update(count(sum(news.lines, (line) => line.waiting)));
      totals.locks.update(count(held));
      pulse.update(history.samples('totals'), { label: 'Grants and admissions per second since this page was opened' });

      const ranked = history.campaigns.map((one) => ({ ...one, pace: history.rate(one.key, 'granted') ?? 0 }))
        .sort((a, b) => b.pace - a.pace || b.granted - a.granted).slice(0, SHOWN);
      panels.campaigns.show(ranked.length);
      keyed(campaigns, ranked, ({ key }) => key, () => campaignRow(history));
      const busiest = [...news.lines].sort((a, b) => b.waiting - a.waiting).slice(0, SHOWN);
      panels.lines.show(busiest.length);
      keyed(lines, busiest, ({ id }) => id, () => lineRow(history));
      const refused = history.rejections();
      panels.refusals.show(refused.length);
      keyed(refusals, refused.map((one) => ({ ...one, share: one.count / refused[0].count })), ({ code }) => code, refusalRow);
      panels.actions.show(news.actions.length);
      keyed(actions, news.actions.slice(0, SHOWN + 1), ({ id }) => id, actionRow);
    },
  };
}

function updateLights(lights, news, connection) {
  const { ledger } = news;
  const recovering = ['coupons', 'deals', 'skus'].reduce((n, list) => n + news[list].filter(({ state }) => state === 'recovering').length, 0);
  if (connection !== 'live') lights.store.update('unknown', 'Not connected', 'What is shown is what was last known.');
  else if (recovering) lights.store.update('yellow', 'Recovering', `${plural(recovering, 'campaign')} being compared with what was seen.`);
  else lights.store.update('green', 'Answers', news.server.store);
  if (!ledger) {
    lights.ledger.update('unknown', 'None', 'Decisions are kept by the store alone.');
    lights.audit.update('unknown', 'None', 'There is no ledger to compare with.');
    return;
  }
  const lag = ledger.behind_ms >= LAG_RED_MS || !ledger.is_written ? 'red' : ledger.behind_ms >= LAG_YELLOW_MS ? 'yellow' : 'green';
  lights.ledger.update(lag, ledger.is_written ? `${span(ledger.behind_ms)} behind` : 'Not written', ledger.is_written ? 'Age of the oldest decision not yet written.' : 'The database refuses; the journal keeps everything.');
  const meaning = { green: 'Every grant is accounted for.', yellow: `${plural(ledger.dead_letters, 'dead letter')} to look at.`, red: 'Something is missing or was decided twice.', unknown: 'Not audited yet.' };
  lights.audit.update(ledger.audit, words(ledger.audit), meaning[ledger.audit] ?? '');
}

function light(name, test, href) {
  const [value, note] = [h('strong', { test: `${test}-text` }), h('span.muted')];
  const node = h(href ? 'a.light' : 'div.light', { href, test }, h('i', { 'aria-hidden': 'true' }), h('div', {}, h('span.light-name', {}, name), value, note));
  return { node, update(state, text, more) { attr(node, 'data-tone', state === 'unknown' ? 'grey' : state); say(value, text); say(note, more); } };
}

function panel(title, href, list, none) {
  const nothing = h('p.none.muted', {}, none);
  const node = h('section.panel', {}, h('div.panel-head', {}, h('h2', {}, title), href && h('a', { href, 'aria-label': `All: ${title}`, test: `all-${href.slice(1)}` }, 'All')), list, nothing);
  return { node, show(any) { show(list, any); show(nothing, !any); } };
}

function campaignRow(history) {
  const [name, kind, left, pace, state] = [h('b'), h('span.muted'), h('b'), h('span.muted'), pill()];
  const trend = spark('remaining', 'water');
  const anchor = h('a.row', {}, h('span.row-name', {}, name, kind), trend.node, h('span.row-state', {}, state.node), h('span.row-end', {}, left, pace));
  return {
    node: h('li', {}, anchor),
    update({ key, kind: of, name: called, body, total, pace: perSecond }) {
      attr(anchor, 'href', `#stock/${of}/${encodeURIComponent(called)}`);
      attr(anchor, 'data-test', `overview-${of}-${called}`);
      say(name, called); say(kind, KINDS[of].one); state.update(body.state);
      say(left, count(body.remaining)); say(pace, perSecond > 0 ? `${rate(perSecond)}/s` : `of ${count(total)}`);
      trend.update(history.samples(key));
    },
  };
}

function lineRow(history) {
  const [name, wait, depth, active, state] = [h('b'), h('span.muted'), h('b'), h('span.muted'), pill()];
  const trend = spark('waiting', 'moss');
  const anchor = h('a.row', {}, h('span.row-name', {}, name, wait), trend.node, h('span.row-state', {}, state.node), h('span.row-end', {}, depth, active));
  return {
    node: h('li', {}, anchor),
    update(line) {
      attr(anchor, 'href', `#lines/${encodeURIComponent(line.id)}`);
      attr(anchor, 'data-test', `overview-line-${line.id}`);
      say(name, line.id); state.update(line.state);
      say(wait, line.recent_waits ? `p50 wait ${span(line.recent_waits.p50_ms)}` : 'No waits yet');
      say(depth, `${count(line.waiting)} waiting`); say(active, `${count(line.active)} inside`);
      trend.update(history.samples(`line/${line.id}`));
    },
  };
}

function refusalRow() {
  const [name, number, share] = [h('span'), h('b'), bar(['ink'])];
  return {
    node: h('li.row.plain', {}, name, share.node, number),
    update({ code, count: n, share: part }) { say(name, words(code)); say(number, count(n)); share.update([part]); },
  };
}

function actionRow({ at, action, target, outcome }) {
  return { node: h('li.row.plain', {}, h('time.muted', { datetime: at }, time(new Date(at))), h('span', {}, h('b', {}, words(action)), ` ${target}`), h('span.muted', {}, words(outcome))), update() {} };
}
