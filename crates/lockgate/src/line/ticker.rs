//! What lets a line go on: a task of each process that has people in it.
//!
//! **Promise:** the line decides by itself what is due, so it does not matter who calls, how many do, or whether one of them dies
//! in the middle. A process calls when the next batch is due, and now and then to hear how the line stands. It stops when
//! nobody waits, nobody is admitted and nobody watches, and begins again with the next caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use super::booth::{Booth, Looks};
use super::drawing;
use super::facts::Facts;
use super::view::{Asked, View};
use crate::clock::Moment;
use crate::error::StoreError;
use crate::jitter;
use crate::store::{LineState, LineTerms, LineTick, MAX_SEEN, Tick};

/// Whether a task runs.
#[derive(Debug, Default)]
pub(super) struct Ticker {
    is_running: AtomicBool,
    /// Somebody has come since the last tick began.
    is_wanted: AtomicBool,
}

/// How long the task waits before it asks again when it got no answer.
const AFTER_AN_ERROR: Duration = Duration::from_millis(200);

/// However often somebody wants it to, the line is not asked to go on more often than this.
const BREATH: Duration = Duration::from_millis(10);

/// A timer may be early by this.
const A_MOMENT: Duration = Duration::from_millis(1);

impl Ticker {
    pub(super) fn wake(&self, booth: &Arc<Booth>) {
        if !self.is_wanted.load(Ordering::SeqCst) {
            self.is_wanted.store(true, Ordering::SeqCst);
        }
        if self.is_running.load(Ordering::SeqCst) {
            return;
        }
        let Ok(runtime) = Handle::try_current() else { return };
        if !booth.ends().is_cancelled() && !self.is_running.swap(true, Ordering::SeqCst) {
            booth.shared.background.spawn_on(run(Running(Arc::clone(booth))), &runtime);
        }
    }
}

/// Says that the task has ended, however that happens.
struct Running(Arc<Booth>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.ticker.is_running.store(false, Ordering::SeqCst);
        // Whoever watches lets another one run, or hears that the gate is closed.
        self.0.watchers.ring_all();
    }
}

/// What to do after a tick.
enum Next {
    /// Look again after this.
    In(Duration),
    /// There is nothing to do.
    Rest,
}

async fn run(running: Running) {
    let booth = Arc::clone(&running.0);
    loop {
        let next = tokio::select! {
            () = booth.ends().cancelled() => return,
            next = tick(&booth) => next.unwrap_or_else(|why| {
                tracing::warn!(line = %booth.line, %why, "the line could not be asked to go on; trying again");
                Next::In(jitter::jittered(AFTER_AN_ERROR))
            }),
        };
        match next {
            Next::In(pause) => tokio::select! {
                () = booth.ends().cancelled() => return,
                () = rest(&booth, pause) => {}
            },
            Next::Rest => {
                drop(running);
                // Somebody may have come since the tick began, and have seen a task that was still running.
                if booth.ticker.is_wanted.load(Ordering::SeqCst) {
                    booth.wake();
                }
                return;
            }
        }
    }
}

/// Returns after the pause, or when somebody wants the line to be looked at.
async fn rest(booth: &Booth, pause: Duration) {
    let clock = &booth.shared.clock;
    let now = clock.monotonic();
    clock.sleep_until(now + pause.min(BREATH)).await;
    tokio::select! {
        () = clock.sleep_until(now + pause) => {}
        () = booth.look.notified() => {}
    }
}

async fn tick(booth: &Arc<Booth>) -> Result<Next, StoreError> {
    booth.ticker.is_wanted.store(false, Ordering::SeqCst);
    let before = booth.view();
    let mut looks = Looks::default();
    while let Some(facts) = looks.next(booth).await? {
        let known = before.as_deref().filter(|view| view.edition == facts.edition);
        let asked = Asked { as_of: booth.shared.clock.monotonic(), changes: booth.changes() };
        let is_asked = is_asked(booth, asked.as_of);
        let tick = what_to_say(booth, &facts, known, is_asked);
        let Some(tick) = booth.shared.store.line_tick(&booth.line, facts.edition, &tick).await? else {
            continue;
        };
        booth.metrics().note(&tick.crowd, &tick.done);
        if tick.crowd.state == LineState::Drawing {
            drawing::draw(booth).await?;
            return Ok(Next::In(Duration::ZERO));
        }
        let view = View::new(&facts, &tick, known, asked);
        if is_asked {
            booth.glances.follow(&view, asked.as_of, glanced_every(&facts.terms));
        } else {
            booth.glances.end();
        }
        publish(booth, view);
        return Ok(next(booth, &tick, &facts.terms, is_asked));
    }
    // There is no such line any more. Whoever watches finds out by asking.
    booth.set_view(None);
    booth.watchers.ring_all();
    Ok(Next::Rest)
}

/// Tells whose turn has come at once, and everybody now and then.
fn publish(booth: &Booth, mut view: View) {
    let before = booth.view();
    let is_time = before.as_ref().is_none_or(|before| {
        view.is_other_than(before) || view.told_at.since(before.told_at) + BREATH >= booth.shared.tick
    });
    if let Some(before) = before.filter(|_| !is_time) {
        view.told_at = before.told_at;
    }
    let head = view.head;
    booth.set_view(Some(Arc::new(view)));
    if is_time {
        booth.watchers.ring_all();
    } else {
        booth.watchers.ring_before(head);
    }
}

/// Whether anybody here wants to know where they stand.
fn is_asked(booth: &Booth, now: Moment) -> bool {
    booth.glances.are_made(now, booth.shared.tick) || !booth.watchers.is_empty()
}

fn what_to_say(booth: &Booth, facts: &Facts, known: Option<&View>, is_asked: bool) -> Tick {
    let mut seen = booth.watchers.to_be_seen(booth.shared.clock.monotonic(), seen_every(&facts.terms));
    seen.extend(booth.glances.to_be_seen(MAX_SEEN - seen.len()));
    // Otherwise nobody asks where the gaps are.
    let known_leaves = is_asked.then(|| known.and_then(|view| view.leaves).unwrap_or(u64::MAX));
    Tick { seen, known_head: None, known_leaves }
}

/// How often a watcher is said to be there: often enough that two lost calls do no harm.
fn seen_every(terms: &LineTerms) -> Duration {
    terms.grace.map_or(Duration::MAX, |grace| grace / 4)
}

/// How often one who glances is said to be there: so that it matters little that it is said a tick later.
fn glanced_every(terms: &LineTerms) -> Duration {
    seen_every(terms) / 2
}

fn next(booth: &Booth, tick: &LineTick, terms: &LineTerms, is_asked: bool) -> Next {
    // One call carries so many signs of life; the others go with the next.
    if booth.watchers.are_due(booth.shared.clock.monotonic(), seen_every(terms))
        || booth.glances.fill_a_call(MAX_SEEN)
    {
        return Next::In(Duration::ZERO);
    }
    let is_empty = tick.crowd.waiting == 0 && tick.crowd.active == 0;
    let is_over = tick.crowd.state == LineState::Closed && tick.crowd.active == 0;
    if (is_empty || is_over) && !is_asked {
        return Next::Rest;
    }
    // The line's own time stands still when nobody calls for longer than a step.
    let at_the_latest = terms.longest_step() / 2;
    let for_watchers = if is_asked { booth.shared.tick } else { at_the_latest };
    let pause = tick.next_in.unwrap_or(Duration::MAX).saturating_add(A_MOMENT);
    let pause = if tick.next_in == Some(Duration::ZERO) { Duration::ZERO } else { pause };
    Next::In(pause.min(for_watchers).min(at_the_latest))
}
