// How numbers, spans and times are written: short enough for a card, exact where it matters.

const whole = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const hours = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' });

/** 12345 → 12,345. */
export const count = (n) => (Number.isFinite(n) ? whole.format(n) : '–');

/** 12345 → 12.3K, for axes. */
export const short = (n) => (Math.abs(n) < 10000 ? whole.format(Math.round(n * 100) / 100) : compact.format(n));

/** Per second: one decimal below ten, none above. */
export function rate(n) {
  if (!Number.isFinite(n)) return '–';
  return n > 0 && n < 10 ? n.toFixed(1) : whole.format(Math.round(n));
}

/** A span of milliseconds in its two largest units. */
export function span(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const two = (big, bigUnit, small, smallUnit) => (small ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`);
  if (seconds < 3600) return two(Math.floor(seconds / 60), 'min', seconds % 60, 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 1440) return two(Math.floor(minutes / 60), 'h', minutes % 60, 'min');
  return two(Math.floor(minutes / 1440), 'd', Math.floor((minutes % 1440) / 60), 'h');
}

/** The time of day, of a Date or milliseconds. */
export const time = (at) => clock.format(at);

/** The time of day without seconds. */
export const minute = (at) => hours.format(at);

/** Day and time, local. */
export const date = (at) => day.format(new Date(at));

/** "in 5 min" or "5 min ago", seen from `now`. */
export function relative(at, now) {
  const ms = new Date(at) - now;
  return ms >= 0 ? `in ${span(ms)}` : `${span(-ms)} ago`;
}

/** One or several: plural(1, 'waiter') → "1 waiter". */
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** `sold-out` → "Sold out". */
export const words = (code) => (code ? code[0].toUpperCase() + code.slice(1).replaceAll('-', ' ') : '');
