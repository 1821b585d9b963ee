// What the page has seen since it was opened: numbers over time, and what follows from them (rates, estimates).
//
// Memory is bounded: when a series has too many samples, every second one of its older half is given up. Times are those of
// arrival, by one clock; `now()` is the server's time, for windows and leases.

const MOST_SAMPLES = 720;
const MOST_SERIES = 2000;
/** Over how long a rate is taken: long enough to be calm, short enough to be true. */
const RATE_MS = 10000;
const ESTIMATE_MS = 30000;
/** Whoever has looked for less than this does not guess. */
const LEAST_MS = 4000;

/** The sorts of what can run out, and what each calls its numbers. */
export const KINDS = {
  coupon: { list: 'coupons', path: 'coupons', one: 'Coupon', many: 'Coupons', total: 'quantity', granted: 'issued', verb: 'issued' },
  deal: { list: 'deals', path: 'deals', one: 'Deal', many: 'Deals', total: 'stock', granted: 'sold', verb: 'sold' },
  sku: { list: 'skus', path: 'skus', one: 'Article', many: 'Articles', total: 'stock', granted: 'sold', verb: 'sold' },
};

export const PENDING = new Set(['scheduled', 'early']);

/** A campaign of any kind, by the same names. */
function campaign(kind, body) {
  const names = KINDS[kind];
  const name = body.group ? `${body.group}/${body.id}` : body.id;
  return { kind, key: `${kind}/${name}`, name, body, total: body[names.total], granted: body[names.granted] };
}

export class History {
  constructor() {
    this.series = new Map();
    this.overview = null;
    this.campaigns = [];
    this.skew = 0;
    this.at = 0;
  }

  /** The server's time, in milliseconds. */
  now() { return Date.now() + this.skew; }

  /** Takes the news; returns what has changed its state, for whoever listens instead of looking. */
  take(overview, at = Date.now()) {
    const changes = this.overview && this.changesTo(overview);
    this.overview = overview;
    this.at = at;
    const told = Date.parse(overview.at);
    if (Number.isFinite(told)) this.skew = told - at;
    this.campaigns = Object.entries(KINDS).flatMap(([kind, { list }]) => (overview[list] ?? []).map((body) => campaign(kind, body)));
    for (const { key, body, granted } of this.campaigns) this.add(key, at, { remaining: body.remaining, granted });
    for (const line of overview.lines ?? []) this.add(`line/${line.id}`, at, { waiting: line.waiting, admitted: line.admitted });
    // One look makes no rate.
    if (changes) this.addTotals(at);
    return changes ?? [];
  }

  /** Sums of rates, not rates of sums: a campaign that appears or vanishes must not look like a rush. */
  addTotals(at) {
    const sum = (numbers) => numbers.reduce((all, one) => all + (one || 0), 0);
    this.add('totals', at, {
      grants: sum(this.campaigns.map(({ key }) => this.rate(key, 'granted', 4000))),
      admissions: sum((this.overview.lines ?? []).map(({ id }) => this.rate(`line/${id}`, 'admitted', 4000))),
    });
    if (this.overview.ledger) this.add('ledger', at, { behind: this.overview.ledger.behind_ms });
  }

  changesTo(next) {
    const states = (overview) => new Map(['coupons', 'deals', 'skus', 'lines'].flatMap((list) =>
      (overview[list] ?? []).map(({ id, group, state }) => [`${list.slice(0, -1)} ${group ? `${group}/` : ''}${id}`, state])));
    const before = states(this.overview);
    return [...states(next)].filter(([name, state]) => before.has(name) && before.get(name) !== state);
  }

  add(key, at, sample) {
    if (!this.series.has(key) && this.series.size >= MOST_SERIES) this.series.delete(this.series.keys().next().value);
    const samples = this.series.get(key) ?? [];
    samples.push({ t: at, ...sample });
    const half = MOST_SAMPLES / 2;
    this.series.set(key, samples.length <= MOST_SAMPLES ? samples : samples.filter((_, i) => i >= half || i % 2 === 0));
  }

  samples(key) { return this.series.get(key) ?? []; }

  /** How much `field` rose per second over the last while; undefined until two samples are there. */
  rate(key, field, over = RATE_MS) {
    const samples = this.samples(key);
    const last = samples.at(-1);
    if (samples.length < 2) return undefined;
    let i = samples.length - 2;
    while (i > 0 && samples[i].t > last.t - over) i -= 1;
    const seconds = (last.t - samples[i].t) / 1000;
    return seconds > 0 ? Math.max(0, last[field] - samples[i][field]) / seconds : undefined;
  }

  /** In how many milliseconds a campaign is sold out if it goes on so; undefined when it does not sell. */
  sellOut({ key, body }) {
    const samples = this.samples(key);
    const perSecond = this.rate(key, 'granted', ESTIMATE_MS);
    if (!samples.length || samples.at(-1).t - samples[0].t < LEAST_MS) return undefined;
    if (body.state !== 'open' || body.remaining <= 0 || !(perSecond > 0)) return undefined;
    return (body.remaining / perSecond) * 1000;
  }

  /** Refusals of one campaign or of all, most frequent first. */
  rejections(kind, id) {
    const counts = new Map();
    for (const { what, id: of, code, count } of this.overview?.rejections ?? []) {
      if (kind === undefined || (what === kind && of === id)) counts.set(code, (counts.get(code) ?? 0) + count);
    }
    return [...counts].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count);
  }
}
