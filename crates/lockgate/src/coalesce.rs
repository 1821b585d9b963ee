//! Where callers that come at the same time are served together.
//!
//! **Promise:** whoever comes while nobody is being served is served at once, by a call of its own; whoever comes while
//! [two calls](UNDER_WAY) are under way goes with the next one, together with all who wait by then. When a call gets no
//! answer, those who wait behind it are told so at once, instead of finding out one call after the other. No timer, and nothing to
//! wait for when it is quiet: between two calls those are let in who are at the door already, and nobody else. Callers who want one thing do not crowd out those who want
//! another: each gets its share of the calls.
//! When too many wait, the next is told [`StoreError::Busy`] at once, and nothing has happened.
//!
//! **Cancel safety:** whoever goes away before its call is made is left out of it. Whoever goes away later leaves the outcome
//! unknown to itself, and nobody else notices: the call goes on for the others.
//!
//! ```text
//! caller 1 ── call ──────────────▶          alone: no queue, no task
//! caller 2 ─── call ─────────────▶          in a task, as all the others
//! caller 3 ──┐
//! caller 4 ──┼─ wait ─▶ one call for 3, 4, 5 as soon as one of the two has ended
//! caller 5 ──┘
//! ```
//!
//! A store that answers at once is asked at once. For the others there is one such queue per operation and partition, because
//! one call is one script on one partition.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::config::Config;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{Answer, MAX_BATCH, Sending, Store, Token};

/// How many calls of one queue are under way at the most: while the store works on one, the other travels.
const UNDER_WAY: u16 = 2;

/// How many turns of the runtime a call waits at the most for those who are at the door.
const LET_IN: u32 = 3;

/// One operation of the store that takes many wishes at once.
pub(crate) trait Operation: Send + Sync + 'static {
    type Wish: Send + Sync + 'static;
    type Said: Send + 'static;
    /// What is wished for: callers who want one thing do not crowd out those who want another.
    type Wanted: Clone + Eq + Hash + Send + 'static;
    /// What counts its calls.
    type Meter: Meter<Self::Said>;
    /// Tells its slots from those of the other operations.
    const NUMBER: u16;
    /// Whether one call can be about different things.
    const MIXES: bool = true;
    /// How many wishes one call takes.
    const MOST: usize = MAX_BATCH;

    fn wanted(wish: &Self::Wish) -> &Self::Wanted;

    /// The name whose partition it belongs to. All wishes of one call must belong to one.
    fn home(wanted: &Self::Wanted) -> &Name;

    /// As how many it counts in a batch.
    fn weight(_: &Self::Wish) -> usize {
        1
    }

    fn call<'a>(
        store: &'a dyn Store,
        sending: &'a Sending,
        wishes: &'a [Self::Wish],
    ) -> Answer<'a, Vec<Self::Said>>;
}

/// Counts what comes of calls: per call, not per wish.
pub(crate) trait Meter<S>: Default + Send + Sync + 'static {
    /// These were the answers of one call.
    fn count(&self, answers: &[S]);

    /// A call for so many wishes was answered after that time. Not said of stores that answer at once.
    fn time(&self, wishes: usize, took: Duration);
}

/// Nothing is counted.
impl<S> Meter<S> for () {
    fn count(&self, _: &[S]) {}

    fn time(&self, _: usize, _: Duration) {}
}

/// What all queues of a gate have in common.
#[derive(Clone)]
pub(crate) struct Rules {
    process: Token,
    clock: Clock,
    max_waiting: usize,
}

impl Rules {
    pub(crate) fn of(config: &Config) -> Self {
        let Config { clock, max_waiting, .. } = config;
        Self { process: Token::random(), clock: clock.clone(), max_waiting: *max_waiting }
    }
}

/// The queues of one operation, one per partition.
pub(crate) struct Queues<O: Operation> {
    store: Arc<dyn Store>,
    rules: Rules,
    meter: Arc<O::Meter>,
    /// By the number of the partition.
    by_partition: RwLock<Vec<Option<Arc<Queue<O>>>>>,
}

impl<O: Operation> Queues<O> {
    pub(crate) fn new(store: &Arc<dyn Store>, rules: &Rules) -> Self {
        let (meter, by_partition) = (Arc::default(), RwLock::default());
        Self { store: Arc::clone(store), rules: rules.clone(), meter, by_partition }
    }

    /// For what is asked of the store elsewhere and counts all the same.
    pub(crate) fn meter(&self) -> &O::Meter {
        &self.meter
    }

    /// Asks the store, alone or together with others.
    pub(crate) async fn ask(&self, wish: O::Wish) -> Result<O::Said, StoreError> {
        if self.store.answers_at_once() {
            let sending = Sending::that_cannot_get_lost();
            let mut answers = O::call(self.store.as_ref(), &sending, std::slice::from_ref(&wish)).await?;
            self.meter.count(&answers);
            return answers.pop().ok_or_else(no_answer);
        }
        let partition = usize::from(self.store.partition_of(O::home(O::wanted(&wish))));
        self.known(partition).unwrap_or_else(|| self.begin(partition)).ask(wish).await
    }

    fn known(&self, partition: usize) -> Option<Arc<Queue<O>>> {
        let queues = self.by_partition.read().unwrap_or_else(PoisonError::into_inner);
        queues.get(partition).cloned().flatten()
    }

    fn begin(&self, partition: usize) -> Arc<Queue<O>> {
        let mut queues = self.by_partition.write().unwrap_or_else(PoisonError::into_inner);
        let length = queues.len().max(partition + 1);
        queues.resize_with(length, || None);
        let new = || {
            let (store, rules, meter) =
                (Arc::clone(&self.store), self.rules.clone(), Arc::clone(&self.meter));
            Arc::new(Queue::new(store, rules, meter))
        };
        Arc::clone(queues[partition].get_or_insert_with(new))
    }
}

/// Those who wait for one operation on one partition.
struct Queue<O: Operation> {
    store: Arc<dyn Store>,
    rules: Rules,
    meter: Arc<O::Meter>,
    state: Mutex<State<O>>,
}

struct State<O: Operation> {
    /// The slots in which nothing is under way. When there is one, nobody waits.
    free: Vec<Slot>,
    /// Those who wait, by what they want; none of them is empty.
    waiting: HashMap<O::Wanted, VecDeque<Waiter<O>>>,
    /// Whose turn it is.
    turns: VecDeque<O::Wanted>,
    /// How many wait.
    count: usize,
    /// How long the last call took.
    call_time: Duration,
}

/// Where a call is under way: see [`Sending`].
#[derive(Clone, Copy)]
struct Slot {
    slot: u16,
    next_number: u64,
}

struct Waiter<O: Operation> {
    wish: O::Wish,
    answer: oneshot::Sender<Result<O::Said, StoreError>>,
    /// Where it waits, so that its call can be made there.
    runtime: Handle,
}

/// How a caller comes in.
enum Entered<O: Operation> {
    Alone(Turn<O>, O::Wish),
    Waiting(oneshot::Receiver<Result<O::Said, StoreError>>),
}

impl<O: Operation> Queue<O> {
    fn new(store: Arc<dyn Store>, rules: Rules, meter: Arc<O::Meter>) -> Self {
        let free = (0..UNDER_WAY).map(|slot| Slot { slot: O::NUMBER * UNDER_WAY + slot, next_number: 1 });
        let state = State {
            free: free.collect(),
            waiting: HashMap::new(),
            turns: VecDeque::new(),
            count: 0,
            call_time: Duration::from_millis(1),
        };
        Self { store, rules, meter, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State<O>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(self: Arc<Self>, wish: O::Wish) -> Result<O::Said, StoreError> {
        match self.enter(wish)? {
            // In a box of its own, which those who wait do not have to carry about: in a crowd that is nearly everybody.
            Entered::Alone(turn, wish) => Box::pin(turn.serve_one(wish)).await,
            Entered::Waiting(answer) => answer.await.unwrap_or_else(|_| Err(no_answer())),
        }
    }

    /// Only one call at a time is made by its caller: one that does not poll its future would keep the slot, and the other
    /// slot goes on for everybody else.
    fn enter(self: &Arc<Self>, wish: O::Wish) -> Result<Entered<O>, StoreError> {
        let mut state = self.lock();
        if state.free.len() == usize::from(UNDER_WAY)
            && let Some(slot) = state.free.pop()
        {
            return Ok(Entered::Alone(Turn { queue: Arc::clone(self), slot }, wish));
        }
        if state.count >= self.rules.max_waiting {
            return Err(StoreError::Busy { retry_after: state.time_for_all() });
        }
        let (answer, receiver) = oneshot::channel();
        let runtime = Handle::try_current()
            .map_err(|_| StoreError::Unavailable("there is no tokio runtime to make the call in".into()))?;
        state.queue_up(Waiter { wish, answer, runtime });
        let slot = state.free.pop();
        drop(state);
        // The end of a turn begins the next one.
        drop(slot.map(|slot| Turn { queue: Arc::clone(self), slot }));
        Ok(Entered::Waiting(receiver))
    }

    /// Those who have just been served and want more, and those whose wishes have arrived meanwhile, go with the next call rather than with
    /// the one after it: fewer calls, and on disk fewer syncs. When nobody comes, it takes one turn of the runtime, which is no time
    /// when it has nothing else to do.
    async fn let_in(&self) {
        let (mut waiting, mut before) = (self.lock().count, None);
        for _ in 0..LET_IN {
            if before.replace(waiting) == Some(waiting) {
                return;
            }
            tokio::task::yield_now().await;
            waiting = self.lock().count;
        }
    }

    /// The store does not answer: nobody has to find that out by itself.
    fn turn_all_away(&self, why: &StoreError) {
        let (StoreError::Unavailable(why) | StoreError::UnknownOutcome(why)) = why else { return };
        let turned_away = {
            let mut state = self.lock();
            state.count = 0;
            state.turns.clear();
            std::mem::take(&mut state.waiting)
        };
        for waiter in turned_away.into_values().flatten() {
            let why = format!("those who came before got no answer: {why}");
            let _ = waiter.answer.send(Err(StoreError::Unavailable(why)));
        }
    }
}

impl<O: Operation> State<O> {
    fn queue_up(&mut self, waiter: Waiter<O>) {
        self.count += 1;
        let wanted = O::wanted(&waiter.wish);
        if let Some(others) = self.waiting.get_mut(wanted) {
            others.push_back(waiter);
            return;
        }
        self.turns.push_back(wanted.clone());
        self.waiting.insert(wanted.clone(), VecDeque::from([waiter]));
    }

    /// Those who go next: of all who want one thing their share, and what is left to whoever comes first. Empty when nobody
    /// waits.
    fn next_batch(&mut self) -> Vec<Waiter<O>> {
        if !O::MIXES {
            return self.next_batch_of_one();
        }
        let mut batch = Vec::with_capacity(self.count.min(O::MOST));
        let mut room = O::MOST;
        let share = (O::MOST / self.turns.len().max(1)).max(1);
        for most in [share, O::MOST] {
            for _ in 0..self.turns.len() {
                if let Some(wanted) = self.turns.pop_front() {
                    let is_left = self.take_of(&wanted, most, &mut room, &mut batch);
                    if is_left && room > 0 {
                        self.turns.push_back(wanted);
                    } else if is_left {
                        // Cut short: it goes on where it was.
                        self.turns.push_front(wanted);
                        return batch;
                    }
                }
            }
        }
        batch
    }

    /// The same, where one call is about one thing: those whose turn it is. All who want it may have gone away; then it is the
    /// next one's turn.
    fn next_batch_of_one(&mut self) -> Vec<Waiter<O>> {
        let mut batch = Vec::with_capacity(self.count.min(O::MOST));
        while batch.is_empty()
            && let Some(wanted) = self.turns.pop_front()
        {
            let mut room = O::MOST;
            if self.take_of(&wanted, O::MOST, &mut room, &mut batch) {
                self.turns.push_back(wanted);
            }
        }
        batch
    }

    /// Takes up to so many who want one thing; says whether others are left.
    fn take_of(
        &mut self,
        wanted: &O::Wanted,
        most: usize,
        room: &mut usize,
        batch: &mut Vec<Waiter<O>>,
    ) -> bool {
        let Some(waiting) = self.waiting.get_mut(wanted) else { return false };
        let mut taken = 0;
        while taken < most {
            let Some(weight) = waiting.front().map(|first| O::weight(&first.wish)) else { break };
            if weight > *room {
                *room = 0;
                break;
            }
            if let Some(waiter) = waiting.pop_front() {
                self.count -= 1;
                // Whoever has gone away is left out.
                if !waiter.answer.is_closed() {
                    *room -= weight;
                    taken += weight;
                    batch.push(waiter);
                }
            }
        }
        if waiting.is_empty() {
            self.waiting.remove(wanted);
            return false;
        }
        true
    }

    /// How long it takes, as things are, to serve all who wait.
    fn time_for_all(&self) -> Duration {
        let calls = u32::try_from(self.count.div_ceil(O::MOST)).unwrap_or(u32::MAX);
        let both = self.call_time.saturating_mul(calls) / u32::from(UNDER_WAY);
        both.clamp(Duration::from_millis(1), Duration::from_secs(10))
    }
}

/// The right to make calls in a slot, one after the other. When it ends, the slot goes to those who wait.
struct Turn<O: Operation> {
    queue: Arc<Queue<O>>,
    slot: Slot,
}

impl<O: Operation> Turn<O> {
    async fn call(&mut self, wishes: &[O::Wish]) -> Result<Vec<O::Said>, StoreError> {
        let Queue { store, rules, meter, .. } = &*self.queue;
        let sending = Sending { process: rules.process, slot: self.slot.slot, number: self.slot.next_number };
        self.slot.next_number += 1;
        let asked_at = rules.clock.monotonic();
        let answers = O::call(store.as_ref(), &sending, wishes).await;
        let answers = answers.inspect_err(|why| self.queue.turn_all_away(why))?;
        let took = rules.clock.monotonic().since(asked_at);
        if wishes.len() > 1 {
            self.queue.lock().call_time = took;
        }
        meter.time(wishes.len(), took);
        meter.count(&answers);
        if answers.len() == wishes.len() { Ok(answers) } else { Err(no_answer()) }
    }

    async fn serve_one(mut self, wish: O::Wish) -> Result<O::Said, StoreError> {
        let mut answers = self.call(std::slice::from_ref(&wish)).await?;
        answers.pop().ok_or_else(no_answer)
    }

    /// Serves these. Those who come meanwhile are served by the next turn, in a runtime of one of them.
    async fn serve(mut self, batch: Vec<Waiter<O>>) {
        let (wishes, waiters): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|waiter| (waiter.wish, waiter.answer)).unzip();
        match self.call(&wishes).await {
            Ok(answers) => {
                for (waiter, answer) in waiters.into_iter().zip(answers) {
                    // It may have gone away; what it was given, it finds when it asks again.
                    let _ = waiter.send(Ok(answer));
                }
            }
            Err(why) => {
                for waiter in waiters {
                    let _ = waiter.send(Err(why.clone()));
                }
            }
        }
        self.queue.let_in().await;
    }
}

impl<O: Operation> Drop for Turn<O> {
    /// In a runtime that is shutting down, what is spawned is dropped at once and comes back here; its batch is gone from the
    /// queue by then, so this ends.
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        let batch = state.next_batch();
        let Some(runtime) = runtime_of(&batch) else {
            state.free.push(self.slot);
            return;
        };
        drop(state);
        let (queue, slot) = (Arc::clone(&self.queue), self.slot);
        runtime.spawn(Turn { queue, slot }.serve(batch));
    }
}

/// The runtime for a call: best one with threads of its own, because another one stands still when nobody waits in it.
fn runtime_of<O: Operation>(batch: &[Waiter<O>]) -> Option<Handle> {
    let has_threads = |waiter: &&Waiter<O>| waiter.runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    batch.iter().find(has_threads).or(batch.first()).map(|waiter| waiter.runtime.clone())
}

/// The call was left alone by whoever made it.
fn no_answer() -> StoreError {
    StoreError::UnknownOutcome("the call was not finished; has its runtime ended?".into())
}

#[cfg(test)]
mod tests;
