// Talking to the server: one function, `call`, that either returns what the server answered or throws a `Problem`.
//
// The token lives in sessionStorage and in the Authorization header, nowhere else: not in an address, not in a log. It is
// kept only after the server has accepted it, so that a mistyped admin token never replaces an app token that works.

const PLACE = 'lockgate-token';
/** Refusals that come after the token was looked at: it was right, the rest was not. */
const ACCEPTED = new Set([400, 404, 409, 422]);

/** What the server said instead of what was hoped for (RFC 9457), or that it did not answer (status 0). */
export class Problem extends Error {
  constructor(status, body = {}) {
    super(body.detail ?? body.title ?? `HTTP ${status}`);
    this.status = status;
    this.code = body.code ?? '';
    this.title = body.title ?? (status ? `The server answered ${status}` : 'The server does not answer');
    this.detail = body.detail ?? '';
    this.errors = Array.isArray(body.errors) ? body.errors : [];
    this.body = body;
  }
}

/** The operator closed the dialog that asked for the token. Nothing was sent, and there is nothing to tell. */
export class Cancelled extends Error {}

let askForToken = async () => null;
let tokenChanged = () => {};

/** Who asks: `ask({ admin, refused })` resolves to a token, or to null. Who is told when the token changes. */
export function useToken({ ask, changed }) {
  askForToken = ask;
  tokenChanged = changed;
}

export const token = () => sessionStorage.getItem(PLACE);

export function forgetToken() {
  sessionStorage.removeItem(PLACE);
  tokenChanged();
}

function keepToken(value) {
  if (value === token()) return;
  sessionStorage.setItem(PLACE, value);
  tokenChanged();
}

/** Looks with a token that is not kept yet, and keeps it if the server accepts it. Throws a Problem of status 401 if not. */
export async function tryToken(path, value) {
  const answer = await send('GET', path, {}, value);
  keepToken(value);
  return answer;
}

/** `GET`, with the token if there is one. Throws a Problem of status 401 instead of asking. */
export const look = (path) => send('GET', path, {}, token());

/**
 * Sends a request; asks for the token when the server wants one, as often as the operator tries.
 * `admin` says which token is meant. Throws `Cancelled` when the operator does not want to.
 */
export async function call(method, path, { body, headers, admin = false } = {}) {
  let using = token();
  let refused = null;
  let source = 'kept';
  for (;;) {
    if (using || !admin) {
      try {
        const answer = await send(method, path, { body, headers }, using);
        if (using) keepToken(using);
        return answer;
      } catch (why) {
        if (using && ACCEPTED.has(why.status)) keepToken(using);
        if (why.status !== 401) throw why;
        refused = using && source;
      }
    }
    using = await askForToken({ admin, refused });
    source = 'given';
    if (!using) throw new Cancelled();
  }
}

async function send(method, path, { body, headers = {} }, using) {
  const response = await open(method, path, { body, headers }, using);
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** The response itself, if it is a good one: for streams. */
export async function open(method, path, { body, headers = {}, signal } = {}, using = token()) {
  const sent = { Accept: 'application/json', ...headers };
  if (using) sent.Authorization = `Bearer ${using}`;
  if (body !== undefined) sent['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {
      method, headers: sent, signal, body: body === undefined ? undefined : JSON.stringify(body),
      cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer',
    });
  } catch (why) {
    if (why.name === 'AbortError') throw why;
    // A token that cannot stand in a header is a wrong one, and never left this page.
    if (using && !/^[\x21-\x7e]+$/.test(using)) throw new Problem(401, { title: 'A valid token is needed' });
    throw new Problem(0, { detail: 'Nothing is known of what became of the call. Is the server running, and the network up?' });
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  const problem = new Problem(response.status, told);
  problem.retryAfterMs = Number(response.headers.get('Retry-After')) * 1000 || 0;
  throw problem;
}

/** A key under which a call happens once, however often it is sent. */
export function idempotencyKey() {
  // Only secure contexts have randomUUID; a dashboard in a private network may be none.
  if (crypto.randomUUID) return crypto.randomUUID();
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
