// The news, once a second, for as long as the page is open.
//
// `connect` reads `/v1/overview/events` with fetch, because an EventSource cannot send a token. It reconnects by itself,
// later and later (with jitter, so that a thousand dashboards do not come back at once), and says how it stands:
//
// | state        | meaning                                                    |
// | ------------ | ---------------------------------------------------------- |
// | connecting   | the first attempt is under way                             |
// | live         | the news come in                                           |
// | reconnecting | they do not; it is tried again by itself                   |
// | locked       | the server wants a token, or another one: nothing is tried |

import { open } from './api.js';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15000;
/** The server speaks every second; one that is silent for so long is gone, whatever TCP believes. */
const SILENCE_MS = 8000;

export function connect({ onOverview, onState }) {
  let round = 0;
  let attempts = 0;
  let cut = new AbortController();
  let timer = null;

  async function run() {
    const mine = ++round;
    clearTimeout(timer);
    cut.abort();
    cut = new AbortController();
    let problem = null;
    try {
      await read(cut, (overview) => {
        if (mine !== round) return;
        attempts = 0;
        onOverview(overview);
        onState('live');
      });
    } catch (why) {
      problem = why;
    }
    if (mine !== round) return;
    if (problem?.status === 401) {
      onState('locked', problem);
      return;
    }
    const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempts++) * (0.75 + Math.random() / 2);
    onState('reconnecting', problem);
    timer = setTimeout(run, Math.max(wait, Math.min(problem?.retryAfterMs ?? 0, LONGEST_WAIT_MS)));
  }

  const again = () => { attempts = 0; run(); };
  window.addEventListener('online', again);
  onState('connecting');
  run();
  return { again };
}

async function read(cut, onOverview) {
  let alarm;
  const heard = () => {
    clearTimeout(alarm);
    alarm = setTimeout(() => cut.abort(), SILENCE_MS);
  };
  try {
    heard();
    const response = await open('GET', '/v1/overview/events', { headers: { Accept: 'text/event-stream' }, signal: cut.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parse = parser((event, data) => { if (event === 'overview') onOverview(JSON.parse(data)); });
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      parse(value);
    }
  } finally {
    clearTimeout(alarm);
    cut.abort();
  }
}

/** Takes pieces of an event stream as they come; calls `onEvent(name, data)` for each whole event. */
export function parser(onEvent) {
  let rest = '';
  let event = '';
  let data = [];
  return (piece) => {
    const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (data.length) onEvent(event || 'message', data.join('\n'));
        event = '';
        data = [];
        continue;
      }
      const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
      if (field === 'event') event = value;
      else if (field === 'data') data.push(value);
    }
  };
}
