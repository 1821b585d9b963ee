// What interrupts: messages that come and go, questions that want an answer, the token.
//
// Questions are native modal dialogs: the focus stays inside, Escape means no (a press beside the dialog does not: it would
// throw away what was typed), and the focus returns to where it was. Each function
// resolves when the operator has decided, and never rejects.

import { Cancelled } from './api.js';
import { button, h } from './dom.js';

const GOOD_MS = 5000;
const BAD_MS = 12000;
const MOST_TOASTS = 4;

/** Shows a message for a while: longer when it is bad, and for as long as the pointer or the focus is on it. */
export function toast(title, { detail = '', bad = false } = {}) {
  const region = document.getElementById('toasts');
  const node = h(`div.toast${bad ? '.bad' : '.good'}`, { role: bad ? 'alert' : 'status', test: 'toast' },
    h('div', {}, h('strong', { test: 'toast-title' }, title), detail && h('p', { test: 'toast-detail' }, detail)),
    h('button.quiet', { type: 'button', 'aria-label': 'Dismiss', test: 'toast-dismiss', onclick: () => node.remove() }, '✕'));
  region.append(node);
  while (region.children.length > MOST_TOASTS) region.firstElementChild.remove();
  // Shown anew, so that it lies above a dialog that has been opened since.
  if (region.matches(':popover-open')) region.hidePopover();
  region.showPopover?.();
  let timer;
  const leave = () => { timer = setTimeout(() => node.remove(), bad ? BAD_MS : GOOD_MS); };
  for (const event of ['pointerenter', 'focusin']) node.addEventListener(event, () => clearTimeout(timer));
  for (const event of ['pointerleave', 'focusout']) node.addEventListener(event, leave);
  leave();
}

/** Tells what went wrong, unless the operator wanted it so. */
export function tell(why) {
  if (why instanceof Cancelled) return;
  const known = why.title !== undefined;
  toast(known ? why.title : 'Something is wrong with this page', { detail: known ? why.detail : String(why), bad: true });
  if (!known) console.error(why);
}

/** Opens a dialog around `content`; `content(settle)` returns its children. Resolves with what was settled, or null. */
export function ask(title, test, content) {
  return new Promise((resolve) => {
    let answer = null;
    const node = h('dialog', { 'aria-labelledby': `${test}-title`, test: `${test}-dialog` });
    const settle = (value) => { answer = value; node.close(); };
    node.append(h('h2', { id: `${test}-title` }, title), ...content(settle));
    node.addEventListener('close', () => { node.remove(); resolve(answer); });
    document.body.append(node);
    node.showModal();
  });
}

/** Asks whether it is really meant. Resolves to true or false; the harmless answer has the focus. */
export async function confirm(title, detail, yes) {
  const answer = await ask(title, 'confirm', (settle) => [
    h('p', {}, detail),
    h('div.buttons', {},
      h('button', { type: 'button', autofocus: true, test: 'confirm-no', onclick: () => settle(false) }, 'Cancel'),
      h('button.danger', { type: 'button', test: 'confirm-yes', onclick: () => settle(true) }, yes)),
  ]);
  return answer === true;
}

let asking = null;

/** Asks for the token, and says which one was `refused`: the one `kept`, or the one `given` just now. Whoever asks while it is being asked gets the same answer. Resolves to it, or to null. */
export function askForToken({ admin, refused }) {
  asking ??= ask(admin ? 'The admin token is needed' : 'A token is needed', 'token', (settle) => tokenForm(admin, refused, settle))
    .finally(() => { asking = null; });
  return asking;
}

function tokenForm(admin, refused, settle) {
  const input = h('input', {
    id: 'token-input', type: 'password', autocomplete: 'off', spellcheck: 'false', autofocus: true, required: true,
    'aria-describedby': 'token-help token-error', 'aria-invalid': refused === 'given' && 'true', test: 'token-input',
  });
  const wrong = {
    kept: 'The token that this tab keeps is not the admin token.',
    given: admin ? 'The server did not accept that as the admin token. Nothing has been changed.' : 'The server did not accept that token.',
  };
  const help = admin
    ? 'This changes something, so the server wants the admin token: the one it was started with (--admin-token), or the one it made and showed at its first start.'
    : 'This server tells how it stands only to those with a token: the app token to look, the admin token to look and to act.';
  const form = h('form', {},
    h('p.muted', { id: 'token-help' }, help),
    h('label', { for: 'token-input' }, 'Token'), input,
    h('p.error', { id: 'token-error', role: 'alert', test: 'token-error' }, wrong[refused] ?? ''),
    h('p.small.muted', {}, 'Kept until this tab is closed; sent to this server only.'),
    h('div.buttons', {},
      h('button', { type: 'button', test: 'token-cancel', onclick: () => settle(null) }, 'Cancel'),
      h('button.primary', { type: 'submit', test: 'token-submit' }, 'Use token')));
  form.addEventListener('submit', (event) => { event.preventDefault(); settle(input.value.trim() || null); });
  return [form];
}

/** A line of text to be copied into a terminal. */
export function command(line, test) {
  const code = h('code', {}, line);
  const copy = button('Copy', test, async () => {
    try {
      await navigator.clipboard.writeText(line);
      toast('Copied', { detail: line });
    } catch {
      // Only secure contexts may write there; selected text can be copied by hand everywhere.
      getSelection().selectAllChildren(code);
    }
  }, 'quiet');
  return h('div.command', {}, code, copy);
}
