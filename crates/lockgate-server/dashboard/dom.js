// Making elements, and changing only what has changed: a page that is told the news every second must not take the
// focus, the selection or the scroll position away from whoever works in it.

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Makes an element: `h('button.primary', { onclick, test: 'x' }, 'Go')`. `test` becomes `data-test`, functions become
 * listeners, `true` an attribute without value; `null`, `undefined` and `false` are left out. Text is never read as HTML.
 */
export function h(what, props = {}, ...children) {
  const [tag, ...classes] = what.split('.');
  return fill(document.createElement(tag || 'div'), classes, props, children);
}

/** The same, of SVG. */
export function s(what, props = {}, ...children) {
  const [tag, ...classes] = what.split('.');
  return fill(document.createElementNS(SVG, tag), classes, props, children);
}

function fill(node, classes, props, children) {
  if (classes.length) node.setAttribute('class', classes.join(' '));
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === 'function') node.addEventListener(name.slice(2), value);
    else attr(node, name === 'test' ? 'data-test' : name, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** Sets an attribute, or removes it, if that changes anything. */
export function attr(node, name, value) {
  if (value === null || value === undefined || value === false) {
    if (node.hasAttribute(name)) node.removeAttribute(name);
    return;
  }
  const text = value === true ? '' : String(value);
  if (node.getAttribute(name) !== text) node.setAttribute(name, text);
}

/** Sets the text, if that changes anything. */
export function say(node, text) {
  const words = String(text ?? '');
  if (node.textContent !== words) node.textContent = words;
}

/** Shows or hides. */
export function show(node, visible) {
  if (node.hidden === Boolean(visible)) node.hidden = !visible;
}

/** Shows one of two, or none; the one that appears takes the focus of the one that goes. */
export function either(one, other, first, any = true) {
  const focused = [one, other].includes(document.activeElement);
  show(one, any && first);
  show(other, any && !first);
  if (focused && any) (first ? one : other).focus();
}

const kept = new WeakMap();

/**
 * Lets the children of `parent` be one per item, in order. `make(item)` returns `{ node, update(item) }`, once per key;
 * afterwards only `update` is called. What has the focus keeps it, also when it moves.
 */
export function keyed(parent, items, keyOf, make) {
  const before = kept.get(parent) ?? new Map();
  const after = new Map();
  const focused = document.activeElement;
  items.forEach((item) => {
    const key = keyOf(item);
    after.set(key, before.get(key) ?? make(item));
  });
  for (const [key, { node }] of before) if (!after.has(key)) node.remove();
  let place = parent.firstElementChild;
  for (const { node } of after.values()) {
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  kept.set(parent, after);
  for (const item of items) after.get(keyOf(item)).update(item);
  if (focused !== document.activeElement && parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** A button that can be pressed again only after what it started is over. */
export function button(label, test, act, kind = '') {
  const node = h(`button${kind && `.${kind}`}`, { type: 'button', test }, label);
  node.addEventListener('click', () => busy(node, act));
  return node;
}

/** Runs `act` with `node` marked busy. Fails as `act` fails. */
export async function busy(node, act) {
  if (node.getAttribute('aria-busy') === 'true') return;
  node.setAttribute('aria-busy', 'true');
  try { await act(); } finally { node.removeAttribute('aria-busy'); }
}
