// Lines: how deep, how fast, how long people wait, and the handles: pause, admit now, change the rate, close.

import { chart } from '../charts.js';
import { admitNow, close, edit, forgetLine, turn } from '../actions.js';
import { attr, busy, button, either, h, keyed, say, show } from '../dom.js';
import { count, plural, rate, span } from '../format.js';
import { termsOfLine, wholeNumber } from '../forms.js';
import { bar, empty, figure, link, moreNote, pill, windowOf } from '../parts.js';

export function lines(path) {
  const cards = h('div.cards', { test: 'line-cards' });
  const more = moreNote();
  const nothing = empty('Nobody stands in line', 'A line is a waiting room: it lets so many people in every so often, in the order in which they came, and gives each a pass that a coupon or a deal can demand.',
    h('p.buttons', {}, link('Create a line', '#create/line', 'empty-create-line', 'button.primary')));
  return {
    node: h('div.stack', {}, nothing, cards, more.node),
    update({ history }) {
      const all = history.overview.lines;
      show(nothing, !all.length);
      keyed(cards, all, ({ id }) => id, (line) => card(line, history));
      more.update(history.overview.more?.lines ?? 0, 'line');
    },
    target: path.length ? `line-${path[0]}` : null,
  };
}

function card(first, history) {
  const { id } = first;
  const test = `line-${id}`;
  let line = first;
  const state = pill(`${test}-state`);
  const [waiting, word, when, terms] = [h('strong', { test: `${test}-waiting` }), h('span.muted', {}, ' waiting'), h('span.muted'), h('span.chip', { test: `${test}-terms` })];
  const inside = bar(['moss']);
  const facts = {
    pace: figure('Admitted per second', `${test}-rate`),
    active: figure('Inside', `${test}-active`),
    p50: figure('Wait, p50', `${test}-p50`, 'Half of those admitted lately waited at most this long'),
    p99: figure('Wait, p99', `${test}-p99`, '99 of 100 of those admitted lately waited at most this long'),
    abandoned: figure('Abandoned', `${test}-abandoned`, 'Passed over, because they were not seen'),
    noShows: figure('No-shows', `${test}-no-shows`, 'Admitted, and did not come'),
  };
  const depth = chart({ test: `${test}-chart`, height: 204, series: [{ field: 'waiting', name: 'Waiting', tone: 'moss' }] });
  const controls = {
    pause: button('Pause', `${test}-pause`, () => turn('lines', id, 'pause')),
    resume: button('Resume', `${test}-resume`, () => turn('lines', id, 'resume'), 'primary'),
    change: button('Change rate', `${test}-edit`, () => edit('line', line)),
    close: button('Close', `${test}-close`, () => close('lines', id, `Nobody enters and nobody is admitted any more; ${plural(line.waiting, 'person', 'people')} who wait are sent away.`), 'danger'),
    forget: button('Forget', `${test}-forget`, () => forgetLine(id), 'danger'),
  };
  const admit = admitForm(test, id);
  const node = h('article.card', { test, tabindex: -1, 'aria-label': `Line ${id}` },
    h('header', {}, h('div.card-name', {}, h('h2', {}, id), terms, state.node),
      h('div.buttons', {}, controls.resume, controls.pause, controls.change, controls.close, controls.forget)),
    h('div.card-body', {},
      h('div.card-facts', {}, h('p.big', {}, waiting, word), inside.node, h('dl.figures', {}, ...Object.values(facts).map((one) => one.node))),
      h('div.card-chart', {}, depth.node)),
    h('footer', {}, when, admit));

  return {
    node,
    update(now) {
      line = now;
      const pace = line.pace_per_second ?? history.rate(`line/${id}`, 'admitted');
      attr(node, 'data-state', line.state);
      state.update(line.state);
      say(waiting, count(line.waiting));
      say(terms, termsOfLine(line));
      inside.update([line.max_active ? line.active / line.max_active : 0]);
      show(inside.node, line.max_active);
      facts.pace.update(rate(pace), line.waiting && pace > 0 ? `empty in ${span((line.waiting / pace) * 1000)}` : '');
      facts.active.update(count(line.active), line.max_active ? `of at most ${count(line.max_active)}` : 'no limit');
      facts.p50.update(span(line.recent_waits?.p50_ms));
      facts.p99.update(span(line.recent_waits?.p99_ms));
      facts.abandoned.update(count(line.abandoned));
      facts.noShows.update(count(line.no_shows));
      say(when, `${count(line.arrived)} came, ${count(line.admitted)} admitted, ${count(line.finished)} finished${line.opens_at ? ` · ${windowOf(line, history.now())}` : ''}${line.prequeue ? ' · with pre-queue' : ''}`);
      depth.update(history.samples(`line/${id}`), { label: `Waiting in ${id}: ${count(line.waiting)}` });
      const over = line.state === 'closed';
      either(controls.resume, controls.pause, line.state === 'paused', !over);
      show(controls.change, !over);
      show(controls.close, !over);
      show(controls.forget, over);
      show(admit, line.state === 'open' || line.state === 'paused');
    },
  };
}

function admitForm(test, id) {
  const input = h('input', { type: 'text', inputmode: 'numeric', value: 10, 'aria-label': `How many to admit into ${id} now`, autocomplete: 'off', test: `${test}-admit-count` });
  const send = h('button', { type: 'submit', test: `${test}-admit` }, 'Admit now');
  const form = h('form.inline', {}, input, send);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const many = wholeNumber(input.value);
    attr(input, 'aria-invalid', !(many > 0));
    if (many > 0) busy(send, () => admitNow(id, many));
    else input.focus();
  });
  return form;
}
