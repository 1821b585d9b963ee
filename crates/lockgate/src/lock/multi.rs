//! Several mutexes at once.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::sync::oneshot;

use super::desk::Desk;
use super::error::{LockError, LockLost};
use super::guard::{Guard, MutexGuard, Released};
use super::hand_off::can_be_relied_on;
use super::metrics::Counted;
use super::mutex::WHOLE;
use super::news::Registry;
use super::owner::Owner;
use super::polling::FinishedAnyway;
use super::room::{Grant, Outcome, Room};
use super::terms::{Cohort, Terms};
use super::wish::{Wish, says_how_long};
use crate::clock::Moment;
use crate::error::{InvalidInput, StoreError};
use crate::key::Name;
use crate::store::{Acquire, Attempt, Fence, Lease, Lock, MAX_TOGETHER, MutexStatus, Token};

/// Several [mutexes](super::Mutex), all of them or none: for whoever needs two accounts, or five seats, at the same time.
///
/// The names are those of mutexes, so it excludes whoever takes one of them alone, and waits for its turn behind them.
///
/// - **No deadlock.** They are taken in the order of their names, whatever the order in which they are given, and a name that
///   is given twice counts once: {1, 2, 3} and {3, 2, 1} cannot wait for each other. That holds as long as whoever waits
///   holds no other lock: who takes a second set while it holds a first one must keep to that order itself.
/// - **No starvation.** It has a place in the queue of each; those who want one of them alone do not overtake it there.
/// - **One step** when all of them are free and in one partition; otherwise one after the other.
/// - The [lease](Self::lease) begins when the last of them is there.
///
/// ```
/// use lockgate::Gate;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let both = gate.multi_lock(["account:7", "account:3"])?;
///
/// let guard = both.lock().await?;
/// for (name, fence) in guard.fences() {
///     println!("{name} with fence {fence}");
/// }
/// assert!(gate.mutex("account:3")?.try_lock().await?.is_none());
/// guard.release().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MultiLock {
    /// Sorted, each once.
    names: Arc<[Name]>,
    /// For the first of them; the others are wished for alike.
    wish: Wish,
}

says_how_long!(MultiLock);

impl MultiLock {
    pub(crate) fn new(desk: Arc<Desk>, mut names: Vec<Name>) -> Result<Self, InvalidInput> {
        names.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        names.dedup();
        let Some(first) = names.first().cloned() else {
            return Err(InvalidInput::new("names", "are none; give at least one"));
        };
        if names.len() > MAX_TOGETHER {
            let problem = format!(
                "are {}; at most {MAX_TOGETHER} can be taken together, so take a lock for the whole instead",
                names.len()
            );
            return Err(InvalidInput::new("names", problem));
        }
        Ok(Self { names: names.into(), wish: Wish::new(desk, Lock::Mutex(first), WHOLE) })
    }

    /// The names, in the order in which they are taken.
    #[must_use]
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// Takes part in what `owner` holds already; each lock is given back when its last guard has gone.
    #[must_use]
    pub fn owned_by(mut self, owner: &Owner) -> Self {
        self.wish.owner = Some(owner.clone());
        self
    }

    /// Takes all of them if they can be had at this moment and nobody waits for one; `None` otherwise.
    ///
    /// # Errors
    ///
    /// When the store does not answer, or the gate is shutting down.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, what it may have got is given back.
    pub async fn try_lock(&self) -> Result<Option<MultiGuard>, LockError> {
        self.wish.settle_in()?;
        let mut guards = Vec::with_capacity(self.names.len());
        for name in self.names.iter() {
            let wish = self.wish_for(name, true);
            let guard = match wish.enter_again() {
                Some(guard) => Some(guard),
                None => wish.try_take().await?,
            };
            // What was taken before is given back by being dropped.
            let Some(guard) = guard else { return Ok(None) };
            guards.push(guard);
        }
        Ok(self.all_held(guards))
    }

    /// Takes all of them, and waits for those that others have.
    ///
    /// # Errors
    ///
    /// [`LockError::TimedOut`] when it took longer than [`wait`](Self::wait); then it holds none. When the store does not
    /// answer at the first attempt, that error; somebody who waits already sees an outage through.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, it holds none of them and waits for none.
    pub async fn lock(&self) -> Result<MultiGuard, LockError> {
        self.wish.settle_in()?;
        let metrics = &self.wish.desk.metrics.multi;
        let began = self.wish.desk.clock.monotonic();
        let _counted = Counted::new(metrics);
        let guard = match self.wish.wait {
            None => self.gather().await,
            Some(Duration::ZERO) => self.try_lock().await?.ok_or_else(|| self.timed_out(Duration::ZERO)),
            Some(at_most) => tokio::time::timeout(at_most, self.gather())
                .await
                .unwrap_or_else(|_| Err(self.timed_out(at_most))),
        }?;
        metrics.wait.record(self.wish.desk.clock.monotonic().since(began).as_secs_f64());
        Ok(guard)
    }

    fn timed_out(&self, waited: Duration) -> LockError {
        self.wish.desk.metrics.multi.timed_out.increment(1);
        LockError::TimedOut { name: self.names[0].clone(), waited }
    }

    async fn gather(&self) -> Result<MultiGuard, LockError> {
        loop {
            if let Some(guard) = self.all_held(self.take_all().await?) {
                return Ok(guard);
            }
            // One was lost while the others were waited for: they have been given back.
        }
    }

    /// One by one, in their order; but as soon as all that are missing can be had in one step, in one step.
    async fn take_all(&self) -> Result<Vec<Guard>, LockError> {
        let mut guards = Vec::with_capacity(self.names.len());
        let mut missing = &self.names[..];
        while let Some((next, others)) = missing.split_first() {
            let has_waited = !guards.is_empty();
            match self.take_in_one_step(missing).await {
                Ok(Some(all)) => {
                    guards.extend(all);
                    break;
                }
                Ok(None) => {}
                // Who has waited for the first ones sees an outage through, in line for the next.
                Err(LockError::Store(_)) if has_waited => {}
                Err(why) => return Err(why),
            }
            let wish = self.wish_for(next, true);
            guards.push(match wish.enter_again() {
                Some(guard) => guard,
                None => wish.stand_in_line(has_waited).await?,
            });
            missing = others;
        }
        Ok(guards)
    }

    /// What is wished of one of them. While the others are waited for, the watchdog keeps it.
    fn wish_for(&self, name: &Name, is_kept: bool) -> Wish {
        let terms = Terms { is_kept: is_kept || self.wish.terms.is_kept, ..self.wish.terms };
        Wish { lock: Lock::Mutex(name.clone()), terms, wait: None, ..self.wish.clone() }
    }

    /// All of these at once, if nobody in this process has or wants one of them and the store has all of them free.
    async fn take_in_one_step(&self, names: &[Name]) -> Result<Option<Vec<Guard>>, LockError> {
        if names.len() < 2 {
            return Ok(None);
        }
        let Some(places) = self.enter_all(names) else { return Ok(None) };
        let (sender, receiver) = oneshot::channel();
        let this = self.clone();
        let step = async move {
            // Nobody there to take them: dropping the guards gives them back.
            let _ = sender.send(this.ask_for_all(places).await);
        };
        FinishedAnyway::new(&self.wish.desk, step).await;
        receiver.await.unwrap_or(Err(LockError::ShuttingDown))
    }

    /// A place in the room of each, if all of them are empty.
    fn enter_all(&self, names: &[Name]) -> Option<Vec<Place>> {
        let mut places = Vec::with_capacity(names.len());
        for name in names {
            let wish = self.wish_for(name, true);
            let room = wish.room();
            // What was entered before is left by being dropped.
            let outcome = room.enter_if_empty(WHOLE, wish.terms, wish.owner)?;
            places.push(Place { room, outcome, is_served: false });
        }
        Some(places)
    }

    async fn ask_for_all(&self, mut places: Vec<Place>) -> Result<Option<Vec<Guard>>, LockError> {
        let (desk, terms) = (&self.wish.desk, self.wish.terms);
        for place in &places {
            // Whoever drops a guard and tries again must not meet itself.
            desk.dropped_is_given_back(&place.room.lock).await?;
        }
        let attempt = |place: &Place| Attempt {
            fences: place.room.fences_at_once(),
            ..Attempt::new(Token::for_ear(desk.ear), terms.lease)
        };
        let wishes: Vec<_> =
            places.iter().map(|place| (place.room.lock.name().clone(), attempt(place))).collect();
        let sent_at = desk.clock.monotonic();
        let answers = match desk.store.mutex_acquire_all(&wishes).await {
            Ok(Some(answers)) => answers,
            Ok(None) => return Ok(None),
            Err(why) => {
                // It may have happened all the same.
                for (name, attempt) in wishes {
                    desk.release_in_background(Lock::Mutex(name), attempt.token);
                }
                return Err(why.into());
            }
        };
        if let Err(why) = self.can_all_be_relied_on(&wishes, sent_at).await {
            for (name, attempt) in wishes {
                desk.release_in_background(Lock::Mutex(name), attempt.token);
            }
            return why.map_or(Ok(None), |why| Err(why.into()));
        }
        // All of them begin, also if one has nobody to begin with any more: those are given back.
        let grants = places.iter_mut().zip(wishes).zip(answers);
        let begun: Vec<_> = grants
            .map(|((place, (_, attempt)), answer)| place.begin(attempt.token, sent_at, answer))
            .collect();
        begun.into_iter().collect::<Option<_>>().map(Some).ok_or(LockError::ShuttingDown)
    }

    /// See [`can_be_relied_on`].
    async fn can_all_be_relied_on(
        &self,
        wishes: &[(Name, Attempt)],
        sent_at: Moment,
    ) -> Result<(), Option<StoreError>> {
        let trusted_until = sent_at + self.wish.terms.lease.length();
        let answers = wishes.iter().map(|(name, attempt)| async move {
            can_be_relied_on(&self.wish.desk, &Lock::Mutex(name.clone()), &attempt.token, trusted_until).await
        });
        for answer in all(answers).await {
            match answer {
                Ok(true) => {}
                Ok(false) => return Err(None),
                Err(why) => return Err(Some(why)),
            }
        }
        Ok(())
    }

    /// All of them are here: their lease begins, if it is to end by itself. Nothing when one has been lost meanwhile.
    fn all_held(&self, guards: Vec<Guard>) -> Option<MultiGuard> {
        let now = self.wish.desk.clock.monotonic();
        if guards.iter().any(|guard| guard.check().is_err()) {
            return None;
        }
        if !self.wish.terms.is_kept {
            let until = now + self.wish.terms.lease.length();
            // What an owner holds already ends when it said so before.
            for guard in guards.iter().filter(|guard| !guard.is_shared_with_its_owner()) {
                guard.end_at(until);
            }
        }
        let guards = guards.into_iter().map(MutexGuard).collect();
        Some(MultiGuard::of(Arc::clone(&self.wish.desk), guards))
    }

    /// Who holds each of them and who waits, as the store knows it.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    pub async fn status(&self) -> Result<Vec<(Name, MutexStatus)>, StoreError> {
        let mut all = Vec::with_capacity(self.names.len());
        for name in self.names.iter() {
            all.push((name.clone(), self.wish.desk.store.mutex_read(name).await?));
        }
        Ok(all)
    }
}

impl fmt::Debug for MultiLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiLock")
            .field("names", &self.names)
            .field("terms", &self.wish.terms)
            .field("wait", &self.wish.wait)
            .finish_non_exhaustive()
    }
}

/// The first place in a room, of somebody who asks the store for the room beside others.
struct Place {
    room: Arc<Room>,
    outcome: oneshot::Receiver<Outcome>,
    is_served: bool,
}

impl Place {
    /// The store has given it.
    fn begin(&mut self, token: Token, sent_at: Moment, answer: Acquire) -> Option<Guard> {
        let Acquire::Granted { fences, lease_left } = answer else { return None };
        let expecting = Registry::expect(&self.room.desk, token);
        let (share, trusted_until) = (WHOLE, sent_at + lease_left);
        let (others_wait, is_claim) = (false, false);
        self.is_served = true;
        self.room.begin_tenure(Grant { expecting, share, fences, trusted_until, others_wait, is_claim });
        self.outcome.try_recv().ok()?.ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_served {
            self.outcome.close();
            // Others may have come who rely on its asking.
            self.room.asked_in_vain();
        }
    }
}

/// Several mutexes that are held. When one of them is lost, all of it is.
#[must_use = "a guard that is dropped at once gives the locks back at once"]
pub struct MultiGuard {
    guards: Vec<MutexGuard>,
    desk: Arc<Desk>,
    /// Nothing for one alone, which is counted as a mutex.
    since: Option<Moment>,
}

impl MultiGuard {
    /// All of these, held together from now on.
    pub(crate) fn of(desk: Arc<Desk>, guards: Vec<MutexGuard>) -> Self {
        let since = (guards.len() > 1).then(|| desk.clock.monotonic());
        Self { guards, desk, since }
    }

    /// Holds these too.
    pub(crate) fn joined_by(mut self, more: Vec<MutexGuard>) -> Self {
        self.guards.extend(more);
        self
    }

    /// The fence of each: higher than that of every grant of the same name before.
    pub fn fences(&self) -> impl Iterator<Item = (&Name, Fence)> {
        self.guards.iter().map(|guard| (guard.name(), guard.fence()))
    }

    /// The fence of one of them.
    #[must_use]
    pub fn fence_of(&self, name: &str) -> Option<Fence> {
        self.fences().find(|(its, _)| its.as_str() == name).map(|(_, fence)| fence)
    }

    /// How long all of them can be trusted, unless they are renewed meanwhile; zero when one is lost.
    #[must_use]
    pub fn lease_left(&self) -> Duration {
        self.guards.iter().map(|guard| guard.lease_left()).min().unwrap_or_default()
    }

    /// Whether all of them are still held, at this moment. Reads a clock, asks nobody. Once lost, always lost.
    ///
    /// # Errors
    ///
    /// [`LockLost`], with the first that is.
    pub fn check(&self) -> Result<(), LockLost> {
        self.guards.iter().try_for_each(|guard| guard.check())
    }

    /// Returns when one of them is lost. Never returns if they are released in time.
    ///
    /// # Cancel safety
    ///
    /// Dropping it has no effect.
    pub async fn lost(&self) {
        let mut losses: Vec<_> = self.guards.iter().map(|guard| Box::pin(guard.lost())).collect();
        poll_fn(|context| {
            let is_lost = losses.iter_mut().any(|loss| loss.as_mut().poll(context).is_ready());
            if is_lost { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Does `work` for as long as all of them are held: when one is lost, the work is dropped where it stands.
    ///
    /// # Errors
    ///
    /// [`LockLost`], when one of them was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the work.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, LockLost> {
        self.check()?;
        tokio::select! {
            biased;
            () = self.lost() => {
                self.check()?;
                Err(LockLost { name: self.guards[0].name().clone() })
            }
            done = work => Ok(done),
        }
    }

    /// Gives all of them back and says what happened: [`Released::WasLost`] when one of them had been lost before. Call it
    /// **after** what was done under them is committed.
    ///
    /// # Errors
    ///
    /// When the store does not answer. The release goes on in the background then; the lease ends it at the latest.
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, the release goes on in the background.
    pub async fn release(mut self) -> Result<Released, LockError> {
        let guards = std::mem::take(&mut self.guards);
        let outcomes = all(guards.into_iter().map(MutexGuard::release)).await;
        let mut released = Released::Released;
        for outcome in outcomes {
            released = match (outcome?, released) {
                (Released::WasLost, _) | (_, Released::WasLost) => Released::WasLost,
                (Released::StillHeld, _) | (_, Released::StillHeld) => Released::StillHeld,
                _ => Released::Released,
            };
        }
        Ok(released)
    }
}

impl Drop for MultiGuard {
    fn drop(&mut self) {
        if let Some(since) = self.since {
            let held_for = self.desk.clock.monotonic().since(since);
            self.desk.metrics.multi.hold.record(held_for.as_secs_f64());
        }
    }
}

impl fmt::Debug for MultiGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MultiGuard").field(&self.guards).finish()
    }
}

/// Waits for all of some futures, beside each other.
async fn all<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut under_way: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, outcome) in &mut under_way {
            if outcome.is_none()
                && let Poll::Ready(done) = Pin::new(future).poll(context)
            {
                *outcome = Some(done);
            }
        }
        let are_done = under_way.iter().all(|(_, outcome)| outcome.is_some());
        if are_done { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    under_way.into_iter().filter_map(|(_, outcome)| outcome).collect()
}
