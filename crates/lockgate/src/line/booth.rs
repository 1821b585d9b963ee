//! All that this process knows and does about one line.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwapOption, Guard};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::facts::Facts;
use super::glances::Glances;
use super::lines::Shared;
use super::metrics::Metrics;
use super::operation::{KnownLine, LineWish, Said};
use super::ticker::Ticker;
use super::view::View;
use super::watchers::Watchers;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Enter, EnterWish, Standing, TicketAt};

/// How often a caller looks again at a line that is not as it was known: it changes once or twice in its life.
const LOOKS: usize = 16;

/// One caller's looks at what is known of a line: the first, and another one each time that it turns out not to be so any more.
#[derive(Default)]
pub(super) struct Looks {
    last: Option<u64>,
    count: usize,
}

impl Looks {
    /// What is known now. `None`: there is no such line.
    pub(super) async fn next(&mut self, booth: &Booth) -> Result<Option<Arc<Facts>>, StoreError> {
        self.count += 1;
        if self.count > LOOKS {
            let why = format!("the line {:?} changes faster than it can be read", booth.line);
            return Err(StoreError::Unavailable(why));
        }
        let facts = match self.last {
            None => booth.facts().await?,
            Some(stale) => booth.facts_after(stale).await?,
        };
        self.last = facts.as_ref().map(|facts| facts.edition);
        Ok(facts)
    }
}

/// See the [module](self).
pub(super) struct Booth {
    pub(super) line: Name,
    pub(super) shared: Arc<Shared>,
    /// Looked up when the line is known to be there.
    metrics: OnceLock<Metrics>,
    pub(super) watchers: Watchers,
    pub(super) glances: Glances,
    /// How often somebody here has done something to the line.
    changes: AtomicU64,
    /// The line as of the last tick that was told; `None` before the first.
    view: ArcSwapOption<View>,
    /// Somebody wants the ticker to look at once.
    pub(super) look: Notify,
    pub(super) ticker: Ticker,
    /// Held while this process draws: a second one would only do the same.
    pub(super) drawing: tokio::sync::Mutex<()>,
    facts: ArcSwapOption<Facts>,
}

impl fmt::Debug for Booth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Booth").field("line", &self.line).finish_non_exhaustive()
    }
}

impl Booth {
    pub(super) fn new(shared: Arc<Shared>, line: Name) -> Arc<Self> {
        Arc::new(Self {
            line,
            shared,
            metrics: OnceLock::new(),
            watchers: Watchers::default(),
            glances: Glances::default(),
            changes: AtomicU64::new(0),
            view: ArcSwapOption::empty(),
            look: Notify::new(),
            ticker: Ticker::default(),
            drawing: tokio::sync::Mutex::default(),
            facts: ArcSwapOption::empty(),
        })
    }

    /// Sees to it that the line goes on, as long as there is somebody in it.
    pub(super) fn wake(self: &Arc<Self>) {
        self.ticker.wake(self);
    }

    /// Somebody here has done something to the line: whoever serves it looks at it, and nobody here is told how it was before.
    pub(super) fn has_changed(self: &Arc<Self>) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.look.notify_one();
        self.wake();
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::SeqCst)
    }

    pub(super) fn metrics(&self) -> &Metrics {
        self.metrics.get_or_init(|| self.shared.metrics_of(&self.line))
    }

    pub(super) fn ends(&self) -> &CancellationToken {
        &self.shared.ends
    }

    pub(super) fn known(&self) -> Option<Arc<Facts>> {
        self.facts.load_full()
    }

    /// [`Self::known`] for a moment: not across an await.
    pub(super) fn known_now(&self) -> Guard<Option<Arc<Facts>>> {
        self.facts.load()
    }

    /// What is known of the line; asks if nothing is. `None`: there is no such line.
    async fn facts(&self) -> Result<Option<Arc<Facts>>, StoreError> {
        match self.known() {
            Some(facts) => Ok(Some(facts)),
            None => self.read().await,
        }
    }

    /// What is known of the line, after somebody has found out that it is not this any more.
    async fn facts_after(&self, stale: u64) -> Result<Option<Arc<Facts>>, StoreError> {
        match self.known() {
            Some(facts) if facts.edition != stale => Ok(Some(facts)),
            _ => self.read().await,
        }
    }

    /// The next caller reads them anew.
    pub(super) fn forget_facts(&self) {
        self.facts.store(None);
    }

    async fn read(&self) -> Result<Option<Arc<Facts>>, StoreError> {
        let status = self.shared.store.line_read(&self.line).await?;
        let facts = status.map(|status| Arc::new(Facts::new(&self.line, &status)));
        self.facts.store(facts.clone());
        Ok(facts)
    }

    fn known_line(&self, facts: &Facts) -> KnownLine {
        KnownLine { line: self.line.clone(), edition: facts.edition }
    }

    pub(super) async fn enter(&self, facts: &Facts, wish: EnterWish) -> Result<Said<Enter>, StoreError> {
        self.shared.entering.ask(LineWish { known: self.known_line(facts), wish }).await
    }

    pub(super) async fn show(&self, facts: &Facts, wish: TicketAt) -> Result<Said<Standing>, StoreError> {
        self.shared.showing.ask(LineWish { known: self.known_line(facts), wish }).await
    }

    /// The line as of the last tick that was told.
    pub(super) fn view(&self) -> Option<Arc<View>> {
        self.view.load_full()
    }

    /// What that view says, if the line was so at most two ticks ago and all that was done here since is in it.
    pub(super) fn look_if_fresh<T>(&self, facts: &Facts, look: impl FnOnce(&View) -> T) -> Option<T> {
        let view = self.view.load();
        let view = view.as_ref()?;
        let at_most = (2 * self.shared.tick).min(facts.terms.grace.map_or(Duration::MAX, |grace| grace / 4));
        let is_fresh = view.edition == facts.edition
            && view.leaves.is_some()
            && view.changes == self.changes()
            && self.shared.clock.monotonic().since(view.as_of) <= at_most;
        is_fresh.then(|| look(view))
    }

    pub(super) fn set_view(&self, view: Option<Arc<View>>) {
        self.view.store(view);
    }
}
