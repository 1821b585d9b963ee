// The theme, before anything is painted: what was chosen last, or what the system says.
//
// A classic script on purpose: a module would run after the first paint and let a dark page flash white.

(() => {
  const themes = ['auto', 'light', 'dark'];
  const remembered = () => {
    try { return localStorage.getItem('lockgate-theme'); } catch { return null; }
  };
  const wear = (theme) => {
    document.documentElement.dataset.theme = themes.includes(theme) ? theme : 'auto';
  };
  wear(remembered());

  /** Puts on the next theme, remembers it, and returns its name. */
  window.nextTheme = () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length];
    wear(next);
    try { localStorage.setItem('lockgate-theme', next); } catch { /* A page that may not remember still changes. */ }
    return next;
  };
})();
