// Create: a coupon, a deal, a line or an article, with what is wrong said beside the field that is wrong.

import { exists, put } from '../actions.js';
import { Cancelled } from '../api.js';
import { confirm, toast } from '../dialogs.js';
import { h, say } from '../dom.js';
import { form, FORMS } from '../forms.js';

export function create(path, { history }) {
  const kind = FORMS[path[0]] ? path[0] : 'coupon';
  const { title, about, path: list } = FORMS[kind];
  const tabs = Object.entries(FORMS).map(([of, { title: name }]) => h('a', { href: `#create/${of}`, 'aria-current': of === kind && 'true', test: `create-kind-${of}` }, name));
  const { node, body, reset } = form(kind, {
    label: `Create ${title.toLowerCase()}`,
    submit: async (id, terms) => {
      // PUT creates and replaces alike; whoever is on this page means the former.
      const replaces = await exists(kind, id, terms.group, history.overview);
      if (replaces && !await confirm(`${id} exists already`, `Its terms would be replaced by these. What is granted stays granted.`, 'Replace its terms')) throw new Cancelled();
      await put(kind, id, terms);
      toast(`${title} ${id} is ${replaces ? 'changed' : 'created'}`, { detail: `PUT /v1/${list}/${id}` });
      reset();
      const name = [terms.group, id].filter(Boolean).join('/');
      location.hash = kind === 'line' ? `#lines/${encodeURIComponent(id)}` : `#stock/${kind}/${encodeURIComponent(name)}`;
    },
  });
  const call = h('pre', { test: 'create-curl' });
  const preview = () => say(call, curl(list, body()));
  node.addEventListener('input', preview);
  preview();
  return {
    node: h('div.stack.narrow', {}, h('nav.segments', { 'aria-label': 'What to create' }, ...tabs),
      h('section.panel', { 'aria-labelledby': 'create-title' }, h('div.panel-head', {}, h('h2', { id: 'create-title' }, `New ${title.toLowerCase()}`)), h('p.muted', {}, about), node),
      h('section.panel', { 'aria-labelledby': 'curl-title' }, h('div.panel-head', {}, h('h2', { id: 'curl-title' }, 'The same from a terminal')), call)),
    update() {},
    focus: () => node.elements[0].focus(),
    needsNews: false,
  };
}

/** What cannot be sent yet is left out; quotes would end the shell's. */
function curl(list, { id, ...terms }) {
  const json = JSON.stringify(terms, (_, value) => (Number.isNaN(value) ? undefined : value)).replaceAll("'", '');
  return `curl -X PUT ${location.origin}/v1/${list}/${id ? encodeURIComponent(id) : '<id>'} \\\n  -H "Authorization: Bearer $LOCKGATE_ADMIN_TOKEN" \\\n  -H 'Content-Type: application/json' \\\n  -d '${json}'`;
}
