//! How far the disk is, and who waits for it.
//!
//! **Promise:** whoever waits for a mark is woken once, when it is decided: by the commit that has it, or by the failure after which it
//! will never be there. A commit wakes nobody else: in a crowd everybody would otherwise be woken by the commits of all the others.
//!
//! **Cancel safety:** whoever goes away is forgotten when the disk has come to its mark.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// How much of the journal an answer was computed from.
#[derive(Clone, Copy, Debug)]
pub(in crate::store::memory) struct Mark {
    pub(super) generation: u64,
    pub(super) noted: u64,
}

/// `Err` with why it is not known whether it is on disk.
type Decided = Result<(), String>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Progress(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// How often the stock was rebuilt. A mark of an earlier generation will never be reached.
    generation: u64,
    /// So many entries are on disk.
    safe: u64,
    /// Why the last commit failed, until the stock has been rebuilt.
    failed: Option<String>,
    /// Those who wait, by how many entries have to be on disk for them; all of this generation.
    waiting: BTreeMap<u64, Vec<oneshot::Sender<Decided>>>,
}

impl State {
    /// `None`: it is not decided yet.
    fn judge(&self, mark: Mark) -> Option<Decided> {
        // A later failure takes nothing back.
        if self.generation == mark.generation && self.safe >= mark.noted {
            return Some(Ok(()));
        }
        match &self.failed {
            Some(why) => Some(Err(why.clone())),
            None if self.generation != mark.generation => Some(Err("it has been read anew since".into())),
            None => None,
        }
    }
}

fn tell(waiting: BTreeMap<u64, Vec<oneshot::Sender<Decided>>>, decided: &Decided) {
    for waiter in waiting.into_values().flatten() {
        // It may have gone away.
        let _ = waiter.send(decided.clone());
    }
}

impl Progress {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many entries are on disk.
    pub(super) fn reach(&self, safe: u64) {
        let mut state = self.lock();
        state.safe = state.safe.max(safe);
        let later = state.waiting.split_off(&(safe + 1));
        let served = std::mem::replace(&mut state.waiting, later);
        drop(state);
        tell(served, &Ok(()));
    }

    /// A commit has failed: nobody knows what is on disk, until the stock has been rebuilt.
    pub(super) fn fail(&self, why: String) {
        let mut state = self.lock();
        state.failed = Some(why.clone());
        let all = std::mem::take(&mut state.waiting);
        drop(state);
        tell(all, &Err(why));
    }

    /// The stock has been rebuilt from what is on disk.
    pub(super) fn begin_anew(&self, generation: u64, safe: u64) {
        let mut state = self.lock();
        let all = std::mem::take(&mut state.waiting);
        *state = State { generation, safe, ..State::default() };
        drop(state);
        tell(all, &Err("it has been read anew since".into()));
    }

    /// Why nothing can be written at present.
    pub(super) fn failed(&self) -> Option<String> {
        self.lock().failed.clone()
    }

    /// Returns when it is decided whether everything up to the mark is on disk.
    pub(super) async fn wait(&self, mark: Mark) -> Decided {
        let decided = {
            let mut state = self.lock();
            if let Some(decided) = state.judge(mark) {
                return decided;
            }
            let (waiter, decided) = oneshot::channel();
            state.waiting.entry(mark.noted).or_default().push(waiter);
            decided
        };
        decided.await.unwrap_or_else(|_| Err("the store is gone".into()))
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn mark(noted: u64) -> Mark {
        Mark { generation: 0, noted }
    }

    #[test]
    fn whoever_waits_is_woken_once_and_by_nobody_elses_commit() {
        let progress = Progress::default();
        let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        let (mut fifth, mut ninth) = (pin!(progress.wait(mark(5))), pin!(progress.wait(mark(9))));
        let mut ask = |of_fifth: bool| {
            let waker = Waker::from(Arc::clone(if of_fifth { &first } else { &second }));
            let mut context = Context::from_waker(&waker);
            if of_fifth { fifth.as_mut().poll(&mut context) } else { ninth.as_mut().poll(&mut context) }
        };
        assert!(ask(true).is_pending() && ask(false).is_pending());
        let woken = || (first.0.load(Ordering::SeqCst), second.0.load(Ordering::SeqCst));
        progress.reach(4);
        assert_eq!(woken(), (0, 0));
        progress.reach(5);
        assert_eq!(woken(), (1, 0));
        assert_eq!(ask(true), Poll::Ready(Ok(())));
        progress.reach(8);
        assert_eq!(woken(), (1, 0));
        progress.reach(20);
        assert_eq!((woken(), ask(false)), ((1, 1), Poll::Ready(Ok(()))));
    }

    #[tokio::test]
    async fn a_failure_tells_those_who_wait_and_takes_nothing_back() {
        let progress = Progress::default();
        progress.reach(3);
        let (waits, fails) = (progress.wait(mark(4)), async { progress.fail("full".into()) });
        assert_eq!(tokio::join!(waits, fails).0, Err("full".to_owned()));
        assert_eq!(progress.wait(mark(3)).await, Ok(()));
        assert_eq!(
            (progress.wait(mark(4)).await, progress.failed()),
            (Err("full".into()), Some("full".into()))
        );
        progress.begin_anew(1, 7);
        assert_eq!((progress.failed(), progress.wait(mark(4)).await.is_err()), (None, true));
        assert_eq!(progress.wait(Mark { generation: 1, noted: 7 }).await, Ok(()));
        let (waits, anew) =
            (progress.wait(Mark { generation: 1, noted: 8 }), async { progress.begin_anew(2, 7) });
        assert!(tokio::join!(waits, anew).0.is_err());
    }
}
