//! Lines: who is next.
//!
//! # The numbers
//!
//! Everybody who enters gets a **number**, one after the other from 0 on: the order of arrival. The **place** is where somebody
//! stands: the line admits by places, from the **head** on, which only rises. Number and place are the same, except for those
//! who came early to a line with a pre-queue: theirs are drawn when the line opens ([`LineDrawn`]).
//!
//! # The states of a place
//!
//! ```text
//!                 leave                      head comes, not seen for the grace period
//!   waiting ──────────────▶ Left       waiting ───────────────────────────────────────▶ Abandoned
//!      │ head comes
//!      ▼            nobody shows the ticket for the grace period
//!   admitted ─────────────────────────────────────────────────────▶ NoShow
//!      │ ticket is shown                       pass_ttl is over
//!      ▼                                  ┌─────────────────────────▶ Expired
//!   admitted, with a pass ── renew ──┐    │          finish
//!      ▲        └────────────────────┼────┴─────────────────────────▶ Finished      (leave: Left)
//!      └─────────────────────────────┘
//! ```
//!
//! What is over stays known for [`OVER_KEPT`], and then is unknown. Whoever is over may enter again, and gets a new number.
//!
//! # The line's own time
//!
//! All periods (every, grace, pass_ttl) are counted in the line's own time. It goes on with the store's clock, from call to call
//! on the line, by at most [`LineTerms::longest_step`] at once and never back: a clock that jumps, a store that was down and
//! a night in which nobody called take nothing from anybody. In such a time nobody could be seen, so nobody is called absent.

use std::fmt;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;

/// How long what is over is known, in the line's time, at the least.
pub const OVER_KEPT: Duration = Duration::from_secs(3_600);

/// How long somebody may stay admitted by renewing, in the line's time.
pub const MAX_STAY: Duration = Duration::from_secs(24 * 3_600);

/// How many wishes one call may carry: so many users with long ids enter within 10 ms, also while the server makes room for more.
pub const MAX_LINE_CALL: usize = 512;

/// How many signs of life one [`Store::line_tick`](super::Store::line_tick) may carry.
pub const MAX_SEEN: usize = 2_048;

/// How many one call admits at the most; a larger batch takes several calls, made at once.
pub const MAX_ADMIT: u32 = 1_000;

/// How many places one call looks at when it admits; more have to be asked for again, at once.
pub const MAX_LOOKED_AT: u32 = 4_096;

/// How many may come early to a line with a pre-queue.
pub const MAX_EARLY: u64 = 16_000_000;

/// How many people a line can have admitted at once, and how many one batch can be.
pub const MAX_CROWD: u32 = 1_000_000;

/// How many passed places a [`LineTick`] tells of at the most.
pub const MAX_PASSED: u64 = 65_536;

/// How many requests to admit are remembered.
pub const ADMITS_KEPT: usize = 64;

/// By how much a line's own time goes on from one call to the next, at the most.
pub(crate) const LONGEST_STEP: Duration = Duration::from_secs(5);

const DAY: Duration = Duration::from_secs(24 * 3_600);

/// How a line admits. Always makes sense: nonsense cannot be constructed.
///
/// ```
/// use std::time::Duration;
/// use lockgate::line::LineTerms;
///
/// let terms = LineTerms::new(100, Duration::from_secs(1))?.max_active(2_000)?.pass_ttl(Duration::from_secs(300))?;
/// assert!(LineTerms::new(0, Duration::from_secs(1)).is_err());
/// # Ok::<(), lockgate::error::InvalidInput>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub struct LineTerms {
    pub(crate) batch: u32,
    pub(crate) every: Duration,
    pub(crate) max_active: Option<u32>,
    pub(crate) pass_ttl: Duration,
    pub(crate) grace: Option<Duration>,
    pub(crate) opens_at: Option<Timestamp>,
    pub(crate) prequeue: bool,
}

/// What [`LineTerms`] say, to be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineTermsParts {
    /// How many are admitted together.
    pub batch: u32,
    /// How often.
    pub every: Duration,
    /// How many may be admitted at once, if that is limited.
    pub max_active: Option<u32>,
    /// For how long somebody is admitted.
    pub pass_ttl: Duration,
    /// Who is not seen for so long is passed over; `None`: nobody is.
    pub grace: Option<Duration>,
    /// Since when it is or will be open, if that was said.
    pub opens_at: Option<Timestamp>,
    /// Whether people may come early.
    pub prequeue: bool,
}

impl LineTerms {
    /// What they say.
    #[must_use]
    pub const fn parts(&self) -> LineTermsParts {
        let Self { batch, every, max_active, pass_ttl, grace, opens_at, prequeue } = *self;
        LineTermsParts { batch, every, max_active, pass_ttl, grace, opens_at, prequeue }
    }

    /// `batch` people every so often, however many are admitted already, each for five minutes; whoever is not seen for a
    /// minute is passed over; open from now on.
    ///
    /// # Errors
    ///
    /// When `batch` is not 1 to [`MAX_CROWD`], or `every` not 10 ms to 24 h.
    pub fn new(batch: u32, every: Duration) -> Result<Self, InvalidInput> {
        check_crowd("batch", batch)?;
        check_period("every", every, Duration::from_millis(10))?;
        let (pass_ttl, grace) = (Duration::from_secs(300), Some(Duration::from_secs(60)));
        Ok(Self { batch, every, max_active: None, pass_ttl, grace, opens_at: None, prequeue: false })
    }

    /// At most so many are admitted at once: the next when one of them has finished, or its time is over.
    ///
    /// # Errors
    ///
    /// When it is not 1 to [`MAX_CROWD`].
    pub fn max_active(self, max_active: u32) -> Result<Self, InvalidInput> {
        check_crowd("max_active", max_active)?;
        Ok(Self { max_active: Some(max_active), ..self })
    }

    /// For how long somebody is admitted, from the moment of showing the ticket.
    ///
    /// # Errors
    ///
    /// When it is not 100 ms to 24 h.
    pub fn pass_ttl(self, pass_ttl: Duration) -> Result<Self, InvalidInput> {
        check_period("pass_ttl", pass_ttl, Duration::from_millis(100))?;
        Ok(Self { pass_ttl, ..self })
    }

    /// Whoever is not seen for so long is passed over when their place comes to the head, and whoever was admitted and does not
    /// show the ticket within it is a no-show. `None`: everybody is waited for, and admitted for `pass_ttl` unseen.
    ///
    /// # Errors
    ///
    /// When it is not 300 ms to 24 h.
    pub fn grace(self, grace: Option<Duration>) -> Result<Self, InvalidInput> {
        if let Some(grace) = grace {
            check_period("grace", grace, Duration::from_millis(300))?;
        }
        Ok(Self { grace, ..self })
    }

    /// Nobody may enter before that.
    #[must_use]
    pub const fn opens_at(self, opens_at: Timestamp) -> Self {
        Self { opens_at: Some(opens_at), prequeue: false, ..self }
    }

    /// Whoever enters before that is early: the order of all who are is drawn when the line opens, in a way that can be
    /// verified.
    #[must_use]
    pub const fn prequeue_until(self, opens_at: Timestamp) -> Self {
        Self { opens_at: Some(opens_at), prequeue: true, ..self }
    }

    /// By how much the line's own time goes on from one call to the next, at the most: 5 s, or half of the grace period.
    #[must_use]
    pub fn longest_step(&self) -> Duration {
        let half = self.grace.map_or(Duration::MAX, |grace| grace / 2);
        half.min(LONGEST_STEP)
    }

    /// For how long an admission waits for the ticket to be shown.
    #[must_use]
    pub fn claim(&self) -> Duration {
        self.grace.unwrap_or(self.pass_ttl)
    }
}

pub(crate) fn check_crowd(field: &'static str, people: u32) -> Result<(), InvalidInput> {
    if (1..=MAX_CROWD).contains(&people) {
        return Ok(());
    }
    Err(InvalidInput::new(field, format!("is {people}; it must be 1 to {MAX_CROWD}")))
}

fn check_period(field: &'static str, period: Duration, shortest: Duration) -> Result<(), InvalidInput> {
    if (shortest..=DAY).contains(&period) {
        return Ok(());
    }
    Err(InvalidInput::new(field, format!("is {period:?}; it must be {shortest:?} to 24 h")))
}

/// 32 bytes that nobody can guess. Its `Debug` does not show them.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub struct LineSecret(pub [u8; 32]);

impl LineSecret {
    /// A new one.
    ///
    /// # Panics
    ///
    /// When the operating system has no randomness to give.
    #[must_use]
    #[expect(
        clippy::expect_used,
        reason = "without randomness no secret is one, and no caller can put it right"
    )]
    pub fn random() -> Self {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        Self(bytes)
    }
}

impl fmt::Debug for LineSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LineSecret(…)")
    }
}

/// What a line that does not exist yet is created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub struct LineSecrets {
    /// By which its tickets are told from forged ones.
    pub tickets: LineSecret,
    /// Of which the draw of the pre-queue is made; committed to before, published after.
    pub draw: LineSecret,
}

/// What came of opening a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineOpen {
    /// It is new.
    Created,
    /// It was there, and has these terms now (perhaps it had them already).
    Changed,
    /// Nothing has changed: it is open already, so that its opening cannot be moved; or somebody is early already, so that the
    /// pre-queue cannot be taken away or added.
    TooLate,
}

/// What an operator does with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineChange {
    /// Admits nobody until it is resumed. People may enter.
    Pause,
    /// Goes on after a pause.
    Resume,
    /// Nobody enters any more, and nobody is admitted any more, for ever. Those who are admitted stay until their time is over.
    Close,
}

/// How a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineState {
    /// It opens later, and nobody may enter.
    Scheduled,
    /// It opens later, and people may come early.
    Early,
    /// Its time has come, and the order of those who came early is being drawn. People may enter, behind them.
    Drawing,
    /// It admits.
    Running,
    /// It admits nobody until it is resumed.
    Paused,
    /// It is over.
    Closed,
}

/// What everybody in a line may know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Crowd {
    /// How the line is.
    pub state: LineState,
    /// How many wait, those who came early included: without those who have left.
    pub waiting: u64,
    /// How many are admitted.
    pub active: u64,
    /// How many places the head passes, counted without those who left, in a million seconds of running: measured, recent times
    /// counting more. `None`: nothing was measured yet.
    ///
    /// A count of the places passed that fades by `exp(-t / c)`, with `c` = 10 s or five times `every`, whichever is more,
    /// divided by `c * (1 - exp(-(r + every) / c))`, where `r` is for how long it has run.
    pub pace: Option<u64>,
}

/// Since when numbers belong to which era: a server that may have forgotten what it had answered begins a new one, so that
/// a number which it gives a second time makes another ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub struct LineEra {
    /// Its own number; they rise.
    pub era: u32,
    /// The first number of it.
    pub from: u64,
}

/// How the early ones were put in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub struct LineDrawn {
    /// How many were early: numbers below this have drawn places.
    pub early: u64,
    /// The hash of the list of their arrival.
    pub arrivals_hash: [u8; 32],
    /// By which their places are computed.
    pub seed: [u8; 32],
}

/// How a line stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineStatus {
    /// What everybody may know.
    pub crowd: Crowd,
    /// How it admits.
    pub terms: LineTerms,
    /// Which version of what follows this is; every call on a ticket names it. It changes when the terms do, when the order is drawn and when an era
    /// begins, and is another one for a line that was made anew under the same name.
    pub edition: u64,
    /// By what it was created.
    pub secrets: LineSecrets,
    /// Its eras, the oldest first; at least one.
    pub eras: Vec<LineEra>,
    /// How many are or were early: known from the moment of opening, before they are drawn.
    pub early: Option<u64>,
    /// How they were put in order.
    pub drawn: Option<LineDrawn>,
    /// How many have ever entered: the next number.
    pub arrived: u64,
    /// The first place that has not been passed.
    pub head: u64,
    /// How many were ever admitted.
    pub admitted: u64,
    /// How many have left while they were waiting.
    pub left: u64,
    /// How many were passed over because they were not seen.
    pub abandoned: u64,
    /// How many were admitted and never showed their ticket.
    pub no_shows: u64,
    /// How many came to the end of their time.
    pub expired: u64,
    /// How many have finished, or left after they were admitted.
    pub finished: u64,
    /// How long the last of those who were admitted lately had waited, with how many were admitted together: the newest
    /// first, at most 128. Those who came early are counted from the opening.
    pub recent_waits: Vec<(Duration, u32)>,
}

/// What came of asking to admit people now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineAdmit {
    /// The next ticks admit so many who wait now, beyond the rate but never more than may be active.
    Noted {
        /// How many: not more than were waiting.
        count: u32,
    },
    /// This request has been noted before.
    Again {
        /// How many it had asked for.
        asked: u32,
    },
    /// It is not open, or closed: nobody is admitted.
    NotOpen(LineState),
}

/// Somebody wants to enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnterWish {
    /// Who.
    pub user: Name,
    /// The ticket that the user is known to have, if there was a draw: only the caller can compute its place.
    pub known: Option<TicketAt>,
}

/// Where somebody stands, as the caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TicketAt {
    /// The number of arrival.
    pub number: u64,
    /// The place: the number itself, or the drawn one.
    pub place: u64,
}

/// What came of the wish to enter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Enter {
    /// The user is in the line.
    In {
        /// With this number.
        number: u64,
        /// Since now.
        is_new: bool,
        /// And stands there.
        standing: Standing,
    },
    /// The user has this number, and its place was drawn: ask again and say where that is.
    Drawn {
        /// The number.
        number: u64,
    },
    /// It opens later.
    NotOpen {
        /// When.
        opens_at: Timestamp,
    },
    /// As many have come early as may.
    Full,
    /// It is over.
    Closed,
}

/// How it stands with a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// The line is not open; the place will be drawn.
    Early,
    /// In the line.
    Waiting {
        /// How many places from the head, those who left not counted: the next one is 1.
        position: u64,
    },
    /// Admitted.
    Admitted {
        /// Who: for the pass.
        user: Name,
        /// Until when, by the store's clock.
        until: Timestamp,
        /// Whether the ticket was shown since: it is now, if this is the answer to showing it.
        is_shown: bool,
    },
    /// It is over.
    Over(Ending),
    /// There is no such ticket (any more).
    Unknown,
}

/// How it ended with a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Ending {
    /// The user left. Also: was not seen for the grace period when the places were drawn.
    Left,
    /// The user was not seen when the place came to the head.
    Abandoned,
    /// The user was admitted and did not show the ticket.
    NoShow,
    /// The user's time was over.
    Expired,
    /// The user was finished.
    Finished,
    /// The line was closed while the user waited.
    Closed,
}

/// The answers to several wishes, and how the line was at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<T> {
    /// What everybody may know.
    pub crowd: Crowd,
    /// One answer per wish, in their order.
    pub each: Vec<T>,
}

/// What a process says to a line and asks of it, now and then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tick {
    /// The places of people who are there, at most [`MAX_SEEN`].
    pub seen: Vec<u64>,
    /// Where the head was the last time, if what happened to the places passed since is of interest.
    pub known_head: Option<u64>,
    /// The number of [`leaves`](LineTick::leaves) the last time, if who left since is of interest.
    pub known_leaves: Option<u64>,
}

/// What a line says to a process, now and then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LineTick {
    /// What everybody may know.
    pub crowd: Crowd,
    /// The first place that has not been passed.
    pub head: u64,
    /// One more than the last place.
    pub tail: u64,
    /// Changes with every one who leaves a place in the line.
    pub leaves: u64,
    /// Who has left the places from `head` (rounded down to a multiple of 8) on: one bit per place, the first one the highest of
    /// the first byte; what it does not reach has not left. `None`: it is as the caller knows it, or the caller did not ask.
    pub gone: Option<Vec<u8>>,
    /// What became of the places from the known head on: the last [`MAX_PASSED`] of them. `None`: admitted (and it may have
    /// ended since).
    pub passed: Vec<Option<Ending>>,
    /// The place of the first of `passed`.
    pub passed_from: u64,
    /// In how much of the line's time the next batch is due; zero: there is more to do, ask again at once. `None`: none is, as
    /// things are.
    pub next_in: Option<Duration>,
    /// What this very call has done.
    pub done: TickDone,
}

/// What one call has done: each is counted by exactly one caller, if its answer arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TickDone {
    /// Admitted.
    pub admitted: u32,
    /// How long each of them had waited, those who came early counted from the opening: waits with how many waited that long, to
    /// a tenth of a second.
    pub waits: Vec<(Duration, u32)>,
    /// Passed over because they were not seen.
    pub abandoned: u32,
    /// Admitted earlier, and the ticket was not shown.
    pub no_shows: u32,
    /// At the end of their time.
    pub expired: u32,
}

/// Somebody who came early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Who.
    pub user: Name,
    /// Whether that one has left, or was not seen for the grace period. Only until the draw.
    pub is_gone: bool,
}

/// Some of those who came early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrivals {
    /// In the order of their numbers.
    pub people: Vec<Arrival>,
}

/// The order in which those who came early will be admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draw {
    /// How it was made.
    pub drawn: LineDrawn,
    /// Who will not be admitted, by *place*: one bit for each of the drawn, the first one the highest of the first byte.
    /// Those of them who have not left count as abandoned.
    pub gone: Vec<u8>,
}

/// What came of a draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineDraw {
    /// The line admits in this order from now on.
    Drawn,
    /// It does already; the order is the same, because it follows from the arrivals and the secret.
    Already,
    /// Another number of people came early: read the arrivals again.
    Again,
    /// It is not to be drawn: not yet open, or without pre-queue, or closed.
    NotDrawing,
}

impl Tick {
    /// Refuses what no store can be asked.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if self.seen.len() > MAX_SEEN {
            return Err(InvalidInput::new("seen", format!("at most {MAX_SEEN} at once")));
        }
        Ok(())
    }
}

impl Draw {
    /// Refuses what no store can be asked.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        if self.gone.len() as u64 != self.drawn.early.div_ceil(8) || self.drawn.early > MAX_EARLY {
            return Err(InvalidInput::new("gone", "must have one bit for each of those who came early"));
        }
        Ok(())
    }
}

/// Refuses more wishes than one call may carry.
pub(crate) fn check_line_call(wishes: usize) -> Result<(), InvalidInput> {
    if wishes > MAX_LINE_CALL {
        return Err(InvalidInput::new("wishes", format!("at most {MAX_LINE_CALL} at once")));
    }
    Ok(())
}
