// The terms of everything that can be set up: one table, from which the page to create and the dialogs to edit are made.
//
// What a field is called here is what it is called in the contract, so that `errors[].field` of the server finds its place
// beside the field. The page itself checks only what it could not send at all; all other rules are the server's.

import { Cancelled } from './api.js';
import { busy, h, say, show } from './dom.js';
import { tell } from './dialogs.js';
import { count, span } from './format.js';

const UNITS = { ms: 1, s: 1000, min: 60000, h: 3600000 };

const id = { name: 'id', type: 'id', label: 'Id', needed: true, hint: 'Letters, digits and . _ : @ - up to 128 characters. Part of every address.' };
const opens = { name: 'opens_at', type: 'time', label: 'Opens', hint: 'Left empty: at once.' };
const closes = { name: 'closes_at', type: 'time', label: 'Closes', hint: 'Left empty: never by itself.' };
const line = { name: 'line', type: 'id', label: 'Line', hint: 'Only with a pass of this line. Left empty: no line.' };

export const FORMS = {
  coupon: {
    path: 'coupons', title: 'Coupon', about: 'So many, one per user.',
    fields: [id, { name: 'quantity', type: 'number', label: 'Quantity', needed: true, hint: 'How many in all.' }, opens, closes, line],
  },
  deal: {
    path: 'deals', title: 'Deal', about: 'Stock with a limit per user, bought in any quantity.',
    fields: [id,
      { name: 'stock', type: 'number', label: 'Stock', needed: true, hint: 'How many in all.' },
      { name: 'per_user', type: 'number', label: 'Per user', hint: 'How many one user may have. Left empty: however many.' },
      opens, closes, line],
  },
  line: {
    path: 'lines', title: 'Line', about: 'A waiting room: so many every so often, in the order in which they came.',
    fields: [id,
      { name: 'batch', type: 'number', label: 'Admit', needed: true, value: 10, hint: 'How many are admitted together.' },
      { name: 'every_ms', type: 'span', label: 'Every', needed: true, value: 1000, hint: 'How often: 10 ms to a day.' },
      { name: 'max_active', type: 'number', label: 'Most inside', hint: 'How many may be admitted at once. Left empty: however many.' },
      { name: 'pass_ttl_ms', type: 'span', label: 'A pass lasts', value: 300000, hint: 'From the moment of showing the ticket. Left empty: five minutes.' },
      { name: 'grace_ms', type: 'span', label: 'Grace', value: 60000, empty: null, hint: 'Who is not seen for so long is passed over. Left empty: nobody is.' },
      opens,
      { name: 'prequeue', type: 'check', label: 'Pre-queue', hint: 'People may come before it opens; their order is then drawn, verifiably.' }],
  },
  sku: {
    path: 'skus', title: 'Article', about: 'Something to be ordered together with others, all or nothing.',
    fields: [id,
      { name: 'stock', type: 'number', label: 'Stock', needed: true, hint: 'How many in all.' },
      { name: 'group', type: 'id', label: 'Group', hint: 'Articles of one group live together. Part of its name: cannot be changed later.' },
      opens, closes],
  },
};

/**
 * A form for one kind. `given` is the body as it stands, or null to create. `submit(id, body)` sends it; when that fails, the
 * messages are put beside the fields and the first one gets the focus. `buttons` stand beside the submit button.
 */
export function form(kind, { given = null, submit, label, buttons = [], focus = false }) {
  const scope = `${given ? 'edit' : 'create'}-${kind}`;
  const shown = FORMS[kind].fields.filter(({ name }) => !given || (name !== 'id' && name !== 'group'));
  const fields = shown.map((spec, i) => field(spec, scope, given, focus && i === 0));
  const trouble = h('p.error', { role: 'alert', hidden: true, test: `${scope}-error` });
  const send = h('button.primary', { type: 'submit', test: `${scope}-submit` }, label);
  const node = h('form.terms', { novalidate: true, test: `${scope}-form` },
    h('div.fields', {}, ...fields.map((one) => one.node)), trouble, h('div.buttons', {}, ...buttons, send));

  const complain = (text) => { say(trouble, text); show(trouble, text); };
  const body = () => Object.fromEntries(fields.map((one) => [one.name, one.value()]).filter(([, value]) => value !== undefined));

  node.addEventListener('submit', (event) => {
    event.preventDefault();
    complain('');
    const wrong = fields.filter((one) => !one.check());
    if (wrong.length) { wrong[0].focus(); return; }
    const { id: name = given?.id, ...terms } = body();
    if (given?.group) terms.group = given.group;
    busy(send, () => submit(name, terms)).catch(refused);
  });

  function refused(why) {
    if (why instanceof Cancelled) return;
    const beside = (why.errors ?? []).filter(({ field: name, message }) => {
      const found = fields.find((one) => one.name === name);
      found?.complain(message);
      return found;
    });
    if (beside.length) { fields.find((one) => one.name === beside[0].field).focus(); return; }
    complain(why.detail || why.title || String(why));
    tell(why);
  }

  return { node, body, reset: () => { node.reset(); fields.forEach((one) => one.complain('')); complain(''); } };
}

function field(spec, scope, given, focus) {
  const { name, type, label, needed, hint } = spec;
  const key = `${scope}-${name}`;
  const was = given ? given[name] : spec.value;
  const about = { id: key, name, test: key, autofocus: focus, 'aria-describedby': `${key}-hint ${key}-error`, 'aria-required': Boolean(needed) };
  const error = h('p.error', { id: `${key}-error`, test: `${key}-error`, 'aria-live': 'polite' });
  const { input, value, rest = [] } = INPUTS[type]({ ...spec, was, about, key });
  const complain = (text) => {
    say(error, text);
    input.setAttribute('aria-invalid', String(Boolean(text)));
  };
  input.addEventListener('input', () => complain(''));
  const says = h('p.hint', { id: `${key}-hint` }, hint);
  const head = h('label', { for: key }, label, needed && h('span.needed', { 'aria-hidden': 'true' }, ' ·'));
  const node = type === 'check'
    ? h('div.field.check', {}, input, h('div', {}, head, says, error))
    : h('div.field', {}, head, h('div.input', {}, input, ...rest), says, error);
  return {
    node, name, value, complain,
    focus: () => input.focus(),
    check() {
      const text = needed && input.value.trim() === '' ? 'is needed' : input.validity.badInput || Number.isNaN(value()) ? (type === 'span' ? 'is not a number' : 'is not a whole number') : '';
      complain(text);
      return !text;
    },
  };
}

/** Each returns the input, and `value()`: what to send, or undefined to leave it out. */
const INPUTS = {
  id({ was, about }) {
    const input = h('input', { ...about, type: 'text', value: was, autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
    return { input, value: () => input.value.trim() || undefined };
  },
  number({ was, about }) {
    const input = h('input', { ...about, type: 'text', value: was, inputmode: 'numeric', autocomplete: 'off' });
    return { input, value: () => wholeNumber(input.value) };
  },
  span({ was, about, key, empty, label }) {
    const unit = Object.keys(UNITS).reverse().find((one) => was >= UNITS[one] && (was * 10) % UNITS[one] === 0) ?? (was ? 'ms' : 's');
    const input = h('input', { ...about, type: 'text', value: was ? was / UNITS[unit] : undefined, inputmode: 'decimal', autocomplete: 'off' });
    const units = h('select', { 'aria-label': `${label}: unit`, test: `${key}-unit` },
      ...Object.keys(UNITS).map((one) => h('option', { value: one, selected: one === unit }, one)));
    const value = () => (input.value.trim() === '' ? empty : Math.round(Number(input.value.replace(',', '.')) * UNITS[units.value]));
    return { input, value, rest: [units] };
  },
  time({ was, about }) {
    const input = h('input', { ...about, type: 'datetime-local', step: 1, value: was && local(was) });
    // Read back, because the field writes whole minutes in a shorter way.
    const before = input.value;
    // What was not touched goes back as it came: the field knows no microseconds.
    return { input, value: () => (input.value === before ? was ?? undefined : input.value ? new Date(input.value).toISOString() : undefined) };
  },
  check({ was, about }) {
    const input = h('input', { ...about, type: 'checkbox', checked: Boolean(was) });
    return { input, value: () => input.checked };
  },
};

/** Digits, with spaces or commas between thousands if one likes; NaN if it is something else. */
export function wholeNumber(text) {
  const digits = text.trim().replace(/[ _,'’](?=\d{3}(\D|$))/g, '');
  if (digits === '') return undefined;
  return /^\d+$/.test(digits) && Number.isSafeInteger(Number(digits)) ? Number(digits) : NaN;
}

/** As the input wants it: local, without zone. */
function local(at) {
  const then = new Date(at);
  return new Date(then - then.getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}

/** What the terms say, in a few words. */
export const termsOfLine = ({ batch, every_ms: every }) => `${count(batch)} every ${every < 1000 ? `${every} ms` : every < 60000 ? `${every / 1000} s` : span(every)}`;
