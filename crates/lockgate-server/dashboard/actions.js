// What an operator can do, each as one function: asks if it cannot be undone, sends it with the admin token, says what
// became of it, and lets the page look again at once. None of them throws: what goes wrong is told.

import { call, idempotencyKey } from './api.js';
import { ask, confirm, tell, toast } from './dialogs.js';
import { h } from './dom.js';
import { form, FORMS } from './forms.js';
import { plural } from './format.js';
import { KINDS } from './history.js';

let lookAgain = () => {};

/** Who fetches the news after something was done. */
export function afterwards(look) { lookAgain = look; }

const at = (path, id, rest = '') => `/v1/${path}/${encodeURIComponent(id)}${rest}`;
const admin = (method, path, more = {}) => call(method, path, { ...more, admin: true });

/** Says whether it was done. */
async function attempt(act, done) {
  try {
    const answer = await act();
    const { title, detail, bad } = done(answer);
    toast(title, { detail, bad });
    lookAgain();
    return true;
  } catch (why) {
    tell(why);
    return false;
  }
}

/** Pauses or resumes a coupon, a deal or a line. */
export function turn(path, id, verb) {
  return attempt(() => admin('POST', at(path, id, `/${verb}`)), () => ({ title: `${id} is ${verb}d` }));
}

export async function close(path, id, consequence) {
  if (!await confirm(`Close ${id}?`, `${consequence} This is for good: it cannot be opened again.`, 'Close for good')) return;
  await attempt(() => admin('POST', at(path, id, '/close')), () => ({ title: `${id} is closed` }));
}

export async function forgetLine(id) {
  if (!await confirm(`Forget ${id}?`, 'The line and everybody in it are removed, with all its counts.', 'Forget')) return;
  await attempt(() => admin('DELETE', at('lines', id)), () => ({ title: `${id} is forgotten` }));
}

/** Admits `count` now. The key is made once, so that a call that is sent again admits nobody twice. */
export function admitNow(id, count) {
  const headers = { 'Idempotency-Key': idempotencyKey() };
  return attempt(() => admin('POST', at('lines', id, '/admit'), { body: { count }, headers }), ({ noted, count: asked }) => ({
    title: `${plural(noted ?? asked, 'person', 'people')} admitted`,
    detail: noted !== undefined && noted < asked ? `${asked} were asked for; no more than that wait, or may be inside at once.` : `Beyond the rate of ${id}.`,
  }));
}

export async function breakLock(key) {
  const sure = await confirm(`Take ${key} from its holder?`,
    'Whoever holds it is not told: it finds out at its next renewal. Only where fences are checked is it kept from writing until then. The next who waits gets the lock.', 'Force release');
  if (!sure) return;
  await attempt(() => admin('POST', at('locks', key, '/break')), ({ fence }) => ({
    title: `${key} is taken away`, detail: `Fence ${fence} shuts the old holder out, wherever fences are checked.`,
  }));
}

/** The oldest dead letters, with how many more there are; nothing when the operator does not want to show the token. */
export async function deadLetters() {
  try {
    return await admin('GET', '/v1/dead-letters');
  } catch (why) {
    tell(why);
    return null;
  }
}

export function replayLetter({ id, campaign, rev }) {
  return attempt(() => admin('POST', at('dead-letters', id, '/replay')), () => ({ title: 'It is in the ledger', detail: campaign && `Change ${rev} of ${campaign}` }));
}

/** All of them, as often as the server says that there are more. */
export function replayLetters() {
  return attempt(async () => {
    let [written, refused, next] = [0, [], ''];
    do {
      const answer = await admin('POST', `/v1/dead-letters/replay${next && `?after=${encodeURIComponent(next)}`}`);
      [written, refused, next] = [written + answer.written, [...refused, ...answer.refused], answer.next];
    } while (next);
    return { written, refused };
  }, ({ written, refused }) => ({
    title: `${plural(written, 'dead letter')} written${refused.length ? `, ${refused.length} refused again` : ''}`,
    detail: refused[0]?.why,
    bad: refused.length > 0,
  }));
}

export async function discardLetter({ id, campaign, rev }) {
  const what = campaign ? `Change ${rev} of ${campaign}` : 'What it holds';
  if (!await confirm('Discard this dead letter?', `${what} will be missing in the ledger and in every audit. The grant itself stays with the store. This is for good.`, 'Discard for good')) return false;
  return attempt(() => admin('DELETE', at('dead-letters', id)), () => ({ title: 'It is discarded' }));
}

/** Creates or replaces. Throws what the server says, because a form shows it beside its fields. */
export async function put(kind, id, body) {
  const answer = await admin('PUT', at(FORMS[kind].path, id), { body });
  lookAgain();
  return answer;
}

/** Whether there is one of that name: asked only when the overview does not show them all. */
export async function exists(kind, id, group, overview) {
  const list = `${FORMS[kind].path}`;
  const shown = overview?.[list]?.some((body) => body.id === id && (body.group ?? undefined) === group);
  if (shown || (overview && !overview.more?.[list])) return Boolean(shown);
  try {
    await call('GET', at(list, id, group ? `?group=${encodeURIComponent(group)}` : ''));
    return true;
  } catch (why) {
    if (why.status === 404 || why.status === 400) return false;
    throw why;
  }
}

/** Lets the terms be edited in a dialog. */
export function edit(kind, body) {
  return ask(`Terms of ${body.id}`, 'edit', (settle) => {
    const { node } = form(kind, {
      given: body, label: 'Save', focus: true,
      buttons: [h('button', { type: 'button', test: 'edit-cancel', onclick: () => settle(null) }, 'Cancel')],
      submit: async (id, terms) => {
        await put(kind, id, terms);
        toast(`The terms of ${id} are changed`, { detail: `PUT /v1/${FORMS[kind].path}/${id}` });
        settle(true);
      },
    });
    const note = kind === 'line' ? 'All fields are replaced. Nobody loses a place; a new rate holds from the next batch on.' : `All fields are replaced. The ${KINDS[kind].total} is a total: it cannot be less than what is ${KINDS[kind].verb} and held.`;
    return [h('p.muted', {}, note), node];
  });
}
