// Charts: numbers over time as smooth lines, drawn by hand into SVG.
//
// The curve is monotone between samples (Fritsch–Carlson): it never shows a value that was not there, so stock never
// seems to rise between two falls, nor to dip below zero. A chart draws itself anew when its data or its width changes.

import { attr, h, s, say } from './dom.js';
import { minute, short, time } from './format.js';

const STEPS_MS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400].map((sec) => sec * 1000);
/** A chart that has just begun leaves this much room to grow into. */
const LEAST_SPAN_MS = 60000;

/** A path through points [x, y], monotone in between. */
export function curve(points) {
  if (points.length < 2) return '';
  const slopes = points.slice(1).map(([x, y], i) => (y - points[i][1]) / Math.max(x - points[i][0], 1e-6));
  const tangents = points.map((_, i) => {
    const [a, b] = [slopes[i - 1], slopes[i]];
    if (a === undefined || b === undefined) return a ?? b;
    return a * b <= 0 ? 0 : (2 * a * b) / (a + b);
  });
  const f = (n) => n.toFixed(1);
  return points.slice(1).reduce((path, [x, y], i) => {
    const [px, py] = points[i];
    const third = (x - px) / 3;
    return `${path}C${f(px + third)} ${f(py + tangents[i] * third)} ${f(x - third)} ${f(y - tangents[i + 1] * third)} ${f(x)} ${f(y)}`;
  }, `M${f(points[0][0])} ${f(points[0][1])}`);
}

/** The smallest of 1, 2, 2.5, 5 × 10ⁿ that is at least `n`. */
function nice(n) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(n, 1e-9)));
  return [1, 2, 2.5, 5, 10].map((m) => m * ten).find((m) => m >= n * (1 - 1e-9));
}

/**
 * A chart with axes. `series` are `{ field, name, tone }`; `unit` follows a value that is read off.
 * `update(samples, { label, project, whole })`: samples are `{ t, [field] }`, `project` is `{ t, v }`, where it leads; `whole` is
 * the height of a chart of zeros.
 */
export function chart({ series, height = 132, unit = '', test }) {
  const grid = s('g.grid');
  // Only the first is filled: two areas on top of each other are mud.
  const area = s(`path.area.${series[0].tone}`);
  const lines = series.map(({ tone }) => s(`path.line.${tone}`));
  const dots = series.map(({ tone }) => s(`circle.dot.${tone}`, { r: 3 }));
  const ahead = s(`path.ahead.${series[0].tone}`);
  const hair = s('line.hair', { visibility: 'hidden' });
  const svg = s('svg', { role: 'img', height, 'data-test': test }, grid, area, ahead, ...lines, ...dots, hair);
  const reading = h('output.reading', { 'aria-hidden': 'true' });
  const node = h('div.chart', {}, svg, reading);
  let samples = [];
  let options = {};
  let width = 0;
  let pointer = null;
  let scale = null;
  let isSeen = false;

  function draw() {
    if (width < 40 || !isSeen) return;
    const [left, right, top, bottom] = [40, 8, 8, 20];
    const first = samples[0]?.t ?? Date.now();
    const last = samples.at(-1)?.t ?? first;
    const end = Math.max(last, first + LEAST_SPAN_MS);
    const until = options.project ? Math.max(end, Math.min(options.project.t, last + Math.max((last - first) * 0.6, LEAST_SPAN_MS))) : end;
    const step = STEPS_MS.find((ms) => (until - first) / ms <= Math.max(2, width / 110)) ?? STEPS_MS.at(-1);
    const to = options.project ? Math.ceil(until / step) * step : until;
    const seen = Math.max(0, ...samples.map((sample) => Math.max(...series.map(({ field }) => sample[field]))));
    const most = seen || options.whole || 1;
    const rung = most <= 4 ? 1 : nice(most / 3);
    const ceiling = Math.ceil(most / rung - 1e-9) * rung;
    const x = (t) => left + ((t - first) / (to - first)) * (width - left - right);
    const y = (v) => top + (1 - v / ceiling) * (height - top - bottom);
    scale = { x, y, first, last };

    attr(svg, 'viewBox', `0 0 ${width} ${height}`);
    const rungs = [];
    for (let v = 0; v <= ceiling + 1e-9; v += rung) {
      rungs.push(s(v ? 'line' : 'line.base', { x1: left, x2: width - right, y1: y(v), y2: y(v) }));
      rungs.push(text(left - 6, y(v) + 3.5, short(v), 'end'));
    }
    for (let t = Math.ceil(first / step) * step; t <= to; t += step) {
      const [at, label] = [x(t), step < 60000 ? time(t) : minute(t)];
      if (at > left + 18 && at < width - 24) rungs.push(text(at, height - 5, label, 'middle'));
    }
    grid.replaceChildren(...rungs);
    series.forEach(({ field }, i) => {
      const path = curve(samples.map((sample) => [x(sample.t), y(sample[field])]));
      attr(lines[i], 'd', path || null);
      if (i === 0) attr(area, 'd', path && `${path}L${x(last).toFixed(1)} ${y(0)}L${x(first).toFixed(1)} ${y(0)}Z`);
      place(dots[i], samples.at(-1), field);
    });
    const { project } = options;
    attr(ahead, 'd', project && samples.length ? clip(x(last), y(samples.at(-1)[series[0].field]), x(project.t), y(project.v), width - right) : null);
    read();
  }

  /** A straight line that ends where the chart does. */
  function clip(x1, y1, x2, y2, edge) {
    const part = Math.min(1, (edge - x1) / Math.max(x2 - x1, 1e-6));
    return `M${x1.toFixed(1)} ${y1.toFixed(1)}L${(x1 + (x2 - x1) * part).toFixed(1)} ${(y1 + (y2 - y1) * part).toFixed(1)}`;
  }

  function place(dot, sample, field) {
    attr(dot, 'visibility', sample ? null : 'hidden');
    if (!sample) return;
    attr(dot, 'cx', scale.x(sample.t).toFixed(1));
    attr(dot, 'cy', scale.y(sample[field]).toFixed(1));
  }

  /** What is under the pointer, or else nothing. */
  function read() {
    const near = pointer === null || !scale ? undefined
      : samples.reduce((best, one) => (Math.abs(scale.x(one.t) - pointer) < Math.abs(scale.x(best.t) - pointer) ? one : best), samples[0]);
    attr(hair, 'visibility', near ? null : 'hidden');
    const shown = near ?? samples.at(-1);
    series.forEach(({ field }, i) => place(dots[i], shown, field));
    if (!near) { say(reading, ''); return; }
    const at = scale.x(near.t).toFixed(1);
    for (const [name, value] of Object.entries({ x1: at, x2: at, y1: 8, y2: height - 20 })) attr(hair, name, value);
    say(reading, `${time(near.t)}  ${series.map(({ field, name }) => `${series.length > 1 ? `${name} ` : ''}${short(near[field])}${unit}`).join(' · ')}`);
  }

  svg.addEventListener('pointermove', (event) => { pointer = event.offsetX; read(); });
  svg.addEventListener('pointerleave', () => { pointer = null; read(); });
  new ResizeObserver(([entry]) => { width = Math.floor(entry.contentRect.width); draw(); }).observe(node);
  // A hundred charts below the edge of the screen cost nothing until they are scrolled to.
  new IntersectionObserver((entries) => { isSeen = entries.at(-1).isIntersecting; draw(); }, { rootMargin: '200px' }).observe(node);

  return {
    node,
    update(next, more = {}) {
      samples = next;
      options = more;
      attr(svg, 'aria-label', more.label ?? series.map(({ name }) => name).join(', '));
      draw();
    },
  };
}

function text(x, y, words, anchor) {
  return s('text', { x: x.toFixed(1), y, 'text-anchor': anchor }, words);
}

/** A line without axes, for a row. */
export function spark(field, tone) {
  const [wide, high] = [120, 32];
  const area = s(`path.area.${tone}`);
  const line = s(`path.line.${tone}`);
  const node = s('svg.spark', { viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, area, line);
  return {
    node,
    update(samples, most = 0) {
      if (samples.length < 2) return;
      const first = samples[0].t;
      const length = Math.max(samples.at(-1).t - first, LEAST_SPAN_MS);
      const top = Math.max(1, most, ...samples.map((sample) => sample[field]));
      const x = (t) => ((t - first) / length) * wide;
      const path = curve(samples.map((sample) => [x(sample.t), 2 + (1 - sample[field] / top) * (high - 3)]));
      attr(line, 'd', path);
      attr(area, 'd', `${path}L${x(samples.at(-1).t).toFixed(1)} ${high}L0 ${high}Z`);
    },
  };
}
