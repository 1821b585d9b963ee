//! All lines that this process has to do with.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::booth::Booth;
use super::metrics::{MAX_LABELS, Metrics};
use super::operation::{Entering, Showing};
use crate::clock::Clock;
use crate::coalesce::{Queues, Rules};
use crate::config::Config;
use crate::key::Name;
use crate::store::Store;

/// The lines' side of a gate.
#[derive(Debug)]
pub(crate) struct Lines {
    shared: Arc<Shared>,
    booths: Mutex<Booths>,
}

/// Those that somebody uses. A booth lives as long as a line, a ticket or a watch of it, or its ticker.
#[derive(Debug)]
struct Booths {
    by_line: HashMap<Name, Weak<Booth>>,
    /// With so many it is worth looking for those that nobody uses: twice as many as were left the last time.
    purge_at: usize,
}

/// Fewer booths than this are never worth a look.
const MANY: usize = 64;

/// Whoever watches is not told more often than this.
const MIN_TICK: Duration = Duration::from_millis(10);

/// What all of them share.
pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    /// See [`Config::line_tick`].
    pub(super) tick: Duration,
    pub(super) entering: Queues<Entering>,
    pub(super) showing: Queues<Showing>,
    pub(super) background: TaskTracker,
    pub(super) ends: CancellationToken,
    labelled: Mutex<HashSet<Name>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Shared {
    /// Lines have labels of their own, up to so many: what is counted must not grow with what people think of.
    pub(super) fn metrics_of(&self, line: &Name) -> Metrics {
        let mut labelled = self.labelled.lock().unwrap_or_else(PoisonError::into_inner);
        if labelled.len() < MAX_LABELS || labelled.contains(line) {
            labelled.insert(line.clone());
            return Metrics::new(line.as_str());
        }
        Metrics::new("other")
    }
}

impl Lines {
    pub(crate) fn new(store: Arc<dyn Store>, config: &Config) -> Arc<Self> {
        let rules = Rules::of(config);
        let shared = Shared {
            clock: config.clock.clone(),
            tick: config.line_tick.max(MIN_TICK),
            entering: Queues::new(&store, &rules),
            showing: Queues::new(&store, &rules),
            background: TaskTracker::new(),
            ends: CancellationToken::new(),
            labelled: Mutex::default(),
            store,
        };
        Arc::new(Self {
            shared: Arc::new(shared),
            booths: Mutex::new(Booths { by_line: HashMap::new(), purge_at: MANY }),
        })
    }

    pub(super) fn booth(&self, line: Name) -> Arc<Booth> {
        let mut booths = self.booths.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(booth) = booths.by_line.get(&line).and_then(Weak::upgrade) {
            return booth;
        }
        if booths.by_line.len() >= booths.purge_at {
            booths.by_line.retain(|_, booth| booth.strong_count() > 0);
            booths.purge_at = (2 * booths.by_line.len()).max(MANY);
        }
        let booth = Booth::new(Arc::clone(&self.shared), line.clone());
        booths.by_line.insert(line, Arc::downgrade(&booth));
        booth
    }

    /// Ends what goes on in the background. The lines go on with whoever else serves them.
    pub(crate) async fn shut_down(&self) {
        self.shared.ends.cancel();
        self.shared.background.close();
        self.shared.background.wait().await;
    }
}
