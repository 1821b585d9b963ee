// Stock: every coupon, deal and article, how it burns down, and what can be done about it.

import { chart } from '../charts.js';
import { close, edit, turn } from '../actions.js';
import { attr, button, either, h, keyed, say, show } from '../dom.js';
import { count, plural, rate, span, time } from '../format.js';
import { KINDS } from '../history.js';
import { bar, empty, figure, link, moreNote, pill, reasons, windowOf } from '../parts.js';

/** What is over stands behind what goes on. */
const LAST = { 'sold-out': 1, closed: 2 };

/** So many cards are drawn until more are wanted: each is told the news every second. */
const FIRST_CARDS = 60;

export function stock(path) {
  let limit = path.length > 1 ? Infinity : FIRST_CARDS;
  let kind = 'all';
  let wanted = '';
  let last = null;
  const search = h('input', { type: 'search', id: 'stock-filter', placeholder: 'Filter by name', 'aria-label': 'Filter by name', autocomplete: 'off', spellcheck: 'false', test: 'stock-filter' });
  const sorts = ['all', ...Object.keys(KINDS)].map((of) => h('button', {
    type: 'button', 'aria-pressed': of === 'all', test: `stock-kind-${of}`,
    onclick: () => { kind = of; sorts.forEach((one) => attr(one, 'aria-pressed', one.dataset.test === `stock-kind-${of}`)); redraw(); },
  }, of === 'all' ? 'All' : KINDS[of].many));
  const found = h('span.muted', { 'aria-live': 'polite' });
  const cards = h('div.cards', { test: 'stock-cards' });
  const rest = button('', 'stock-show-all', () => { limit = Infinity; redraw(); });
  const more = moreNote();
  const nothing = empty('Nothing to give away yet', 'Create a coupon (one per user), a deal (stock with a limit per user) or an article (ordered together with others).',
    h('p.buttons', {}, link('Create a coupon', '#create/coupon', 'empty-create-coupon', 'button.primary'), link('Create a deal', '#create/deal', 'empty-create-deal'), link('Create an article', '#create/sku', 'empty-create-sku')));
  const tools = h('div.tools', {}, h('div.segments', { role: 'group', 'aria-label': 'Kind' }, ...sorts), search, found);
  search.addEventListener('input', () => { wanted = search.value.trim().toLowerCase(); redraw(); });

  function redraw() {
    if (!last) return;
    const { history } = last;
    const all = history.campaigns;
    const chosen = all.filter((one) => (kind === 'all' || one.kind === kind) && one.name.toLowerCase().includes(wanted))
      .sort((a, b) => (LAST[a.body.state] ?? 0) - (LAST[b.body.state] ?? 0));
    show(nothing, !all.length);
    show(tools, all.length);
    say(found, chosen.length === all.length ? '' : `${chosen.length} of ${all.length}`);
    show(rest, chosen.length > limit);
    say(rest, `Show all ${count(chosen.length)}`);
    keyed(cards, chosen.slice(0, limit), ({ key }) => key, (one) => card(one, history));
    const hidden = history.overview.more ?? {};
    more.update((hidden.coupons ?? 0) + (hidden.deals ?? 0) + (hidden.skus ?? 0), 'campaign');
  }

  return {
    node: h('div.stack', {}, tools, nothing, cards, h('p', {}, rest), more.node),
    update(state) { last = state; redraw(); },
    target: path.length > 1 ? `${path[0]}-${path.slice(1).join('/')}` : null,
  };
}

function card({ kind, name, body: first }, history) {
  const names = KINDS[kind];
  const test = `${kind}-${name}`;
  let body = first;
  const state = pill(`${test}-state`);
  const [left, of, when, passOf] = [h('strong', { test: `${test}-remaining` }), h('span.muted'), h('span.muted', { test: `${test}-window` }), h('a.chip', { hidden: true, test: `${test}-line` })];
  const share = bar(['granted', 'held']);
  const facts = {
    granted: figure(kind === 'coupon' ? 'Issued' : 'Sold', `${test}-granted`),
    held: figure('Held', `${test}-held`, 'Put aside, and not decided yet'),
    pace: figure('Per second', `${test}-rate`, 'Over the last ten seconds'),
    end: figure('Sells out', `${test}-sellout`, 'If it goes on as in the last half minute'),
  };
  const burn = chart({ test: `${test}-chart`, height: 172, series: [{ field: 'remaining', name: 'Remaining', tone: 'water' }] });
  const refused = reasons(`${test}-rejections`);
  // Articles have no brake: an order takes several, and one that stands still would stop them all.
  const brakes = kind === 'sku' ? {} : {
    pause: button('Pause', `${test}-pause`, () => turn(names.path, body.id, 'pause')),
    resume: button('Resume', `${test}-resume`, () => turn(names.path, body.id, 'resume'), 'primary'),
    close: button('Close', `${test}-close`, () => close(names.path, body.id, `Nothing of it is ${names.verb} any more; ${plural(body.remaining, 'piece')} stay on the shelf.`), 'danger'),
  };
  const change = button('Edit', `${test}-edit`, () => edit(kind, body));
  const node = h('article.card', { test, tabindex: -1, 'aria-label': `${names.one} ${name}` },
    h('header', {}, h('div.card-name', {}, h('h2', {}, name), h('span.chip', {}, names.one), passOf, state.node),
      h('div.buttons', {}, brakes.resume, brakes.pause, change, brakes.close)),
    h('div.card-body', {},
      h('div.card-facts', {}, h('p.big', {}, left, of), share.node, h('dl.figures', {}, ...Object.values(facts).map((one) => one.node))),
      h('div.card-chart', {}, burn.node)),
    h('footer', {}, when, refused.node));

  return {
    node,
    update(now) {
      body = now.body;
      const ends = history.sellOut(now);
      attr(node, 'data-state', body.state);
      state.update(body.state);
      say(left, count(body.remaining)); say(of, ` of ${count(now.total)} left`);
      say(when, [windowOf(body, history.now()), body.per_user && `${count(body.per_user)} per user`].filter(Boolean).join(' · '));
      show(passOf, body.line);
      if (body.line) { say(passOf, `Line ${body.line}`); attr(passOf, 'href', `#lines/${encodeURIComponent(body.line)}`); }
      share.update([now.granted / now.total, body.held / now.total]);
      facts.granted.update(count(now.granted));
      facts.held.update(count(body.held));
      facts.pace.update(rate(history.rate(now.key, 'granted')));
      facts.end.update(body.state === 'sold-out' ? 'Sold out' : ends === undefined ? '–' : `in ${span(ends)}`, ends === undefined || ends > 86400000 ? '' : `about ${time(Date.now() + ends)}`);
      burn.update(history.samples(now.key), {
        label: `Remaining of ${name}: ${count(body.remaining)} of ${count(now.total)}`,
        whole: now.total,
        project: ends === undefined ? null : { t: history.at + ends, v: 0 },
      });
      refused.update(history.rejections(kind, body.id));
      const over = body.state === 'closed';
      if (brakes.pause) {
        either(brakes.resume, brakes.pause, body.state === 'paused', !over);
        show(brakes.close, !over);
      }
      show(change, !over);
    },
  };
}
