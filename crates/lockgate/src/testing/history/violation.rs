//! What can be wrong, one sentence each.

use std::fmt;

/// An operation that a [`Violation`] rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Who asked.
    pub process: String,
    /// Which of its operations.
    pub op: u64,
    /// When it was about to be sent, in nanoseconds since boot.
    pub invoked: u64,
    /// When its end was recorded, if ever.
    pub ended: Option<u64>,
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} of {} ({}", self.op, self.process, Seconds(self.invoked))?;
        match self.ended {
            Some(ended) => write!(f, " to {})", Seconds(ended)),
            None => write!(f, ", never ended)"),
        }
    }
}

/// Nanoseconds since boot, readable and exact.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A promise that was broken. Each is certain: no timing of the recorded operations can explain it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the sentence above each variant names its fields")]
pub enum Violation {
    #[error("malformed history: {0}")]
    Malformed(#[from] Malformed),

    #[error("lock {lock:?} was granted twice with fence {fence}: by {first} and by {second}")]
    FenceGivenTwice { lock: String, fence: u64, first: Witness, second: Witness },
    #[error(
        "lock {lock:?} was granted with fence {fence} by {later}, after {earlier} already had fence {higher}"
    )]
    FenceWentBack { lock: String, fence: u64, later: Witness, higher: u64, earlier: Witness },
    #[error(
        "{resource:?} accepted fence {fence} by {later}, after it had accepted fence {higher} by {earlier}"
    )]
    StaleWriteAccepted { resource: String, fence: u64, later: Witness, higher: u64, earlier: Witness },
    #[error(
        "lock {lock:?} had two holders that both had reason to trust it for {overlap_ns} ns: {first} and {second}"
    )]
    TwoHolders { lock: String, overlap_ns: u64, first: Witness, second: Witness },
    #[error(
        "lock {lock:?}: {waiter} was overtaken {overtakes} times while queued, at most {allowed} are allowed; once by {overtaker}"
    )]
    WaiterOvertaken { lock: String, waiter: Witness, overtakes: u64, allowed: u64, overtaker: Witness },

    #[error(
        "campaign {campaign:?} had {granted} granted for certain when {last} was answered, of {total} at most"
    )]
    Oversold { campaign: String, granted: u64, total: u64, last: Witness },
    #[error("campaign {campaign:?} holds {granted} granted according to {listing}, of {total} at most")]
    OversoldInListing { campaign: String, granted: u64, total: u64, listing: Witness },
    #[error("campaign {campaign:?} gave seq {seq} to {user:?} by {by}, beyond 1..={total}")]
    SeqOutOfRange { campaign: String, seq: u64, user: String, total: u64, by: Witness },
    #[error(
        "campaign {campaign:?} gave seq {seq} twice: to {first_user:?} by {first} and to {second_user:?} by {second}"
    )]
    SeqGivenTwice {
        campaign: String,
        seq: u64,
        first_user: String,
        first: Witness,
        second_user: String,
        second: Witness,
    },
    #[error(
        "campaign {campaign:?}: {user:?} may have {limit}, and had {held} with seqs {seqs:?}, the last by {last}"
    )]
    UserOverLimit { campaign: String, user: String, limit: u64, held: u64, seqs: Vec<u64>, last: Witness },
    #[error(
        "campaign {campaign:?}: {user:?} may have {limit}, and has {held} with seqs {seqs:?} according to {listing}"
    )]
    UserOverLimitInListing {
        campaign: String,
        user: String,
        limit: u64,
        held: u64,
        seqs: Vec<u64>,
        listing: Witness,
    },
    #[error(
        "campaign {campaign:?} told {user:?} \"already\" with seq {seq} by {by}, and nothing could have granted it before"
    )]
    AlreadyWithoutGrant { campaign: String, user: String, seq: u64, by: Witness },

    #[error("campaign {campaign:?} lost seq {seq} of {user:?}, acknowledged by {by}: it is not in {listing}")]
    GrantLost { campaign: String, user: String, seq: u64, by: Witness, listing: Witness },
    #[error(
        "campaign {campaign:?} holds {listed} for seq {seq} of {user:?} in {listing}, {asked} were granted by {by}"
    )]
    GrantAltered {
        campaign: String,
        user: String,
        seq: u64,
        asked: u64,
        listed: u64,
        by: Witness,
        listing: Witness,
    },
    #[error(
        "campaign {campaign:?} still holds seq {seq} of {user:?} in {listing}, although {by} took it back"
    )]
    RevokeLost { campaign: String, user: String, seq: u64, by: Witness, listing: Witness },
    #[error(
        "campaign {campaign:?} holds seq {seq} of {user:?} in {listing}, which nobody can have asked for"
    )]
    GrantInvented { campaign: String, user: String, seq: u64, listing: Witness },
    #[error("campaign {campaign:?} holds seq {seq} twice in {listing}")]
    ListedTwice { campaign: String, seq: u64, listing: Witness },
    #[error(
        "campaign {campaign:?} has {rows} grants in {listing}, of which none is seq {missing}, and nothing was revoked"
    )]
    SeqsNotDense { campaign: String, rows: u64, missing: u64, listing: Witness },

    #[error("the ledger of {campaign:?} jumps from rev {before} to rev {after} in {ledger}")]
    RevGap { campaign: String, before: u64, after: u64, ledger: Witness },
    #[error("the ledger of {campaign:?} has rev {rev} twice in {ledger}")]
    RevRepeated { campaign: String, rev: u64, ledger: Witness },
    #[error("the ledger of {campaign:?} has two different contents for rev {rev} in {ledger}")]
    RevConflict { campaign: String, rev: u64, ledger: Witness },
    #[error(
        "the ledger of {campaign:?} has no row in {ledger} for the {change} of seq {seq} of {user:?}, acknowledged by {by}"
    )]
    LedgerRowMissing {
        campaign: String,
        change: &'static str,
        user: String,
        seq: u64,
        by: Witness,
        ledger: Witness,
    },
    #[error(
        "the ledger of {campaign:?} has the {change} of seq {seq} of {user:?} twice in {ledger}: rev {first} and rev {second}"
    )]
    LedgerRowTwice {
        campaign: String,
        change: &'static str,
        user: String,
        seq: u64,
        first: u64,
        second: u64,
        ledger: Witness,
    },
    #[error(
        "the ledger of {campaign:?} has the {change} of seq {seq} of {user:?} in {ledger}, which nobody can have asked for"
    )]
    LedgerRowInvented { campaign: String, change: &'static str, user: String, seq: u64, ledger: Witness },
    #[error("campaign {campaign:?}: seq {seq} of {user:?} is only in the {side}, by {listing} and {ledger}")]
    LedgerDisagrees {
        campaign: String,
        user: String,
        seq: u64,
        side: &'static str,
        listing: Witness,
        ledger: Witness,
    },

    #[error(
        "line {line:?} gave place {place} twice: to {first_user:?} by {first} and to {second_user:?} by {second}"
    )]
    PlaceGivenTwice {
        line: String,
        place: u64,
        first_user: String,
        first: Witness,
        second_user: String,
        second: Witness,
    },
    #[error("line {line:?} gave place {place} by {later}, after {earlier} already had place {higher}")]
    PlaceWentBack { line: String, place: u64, later: Witness, higher: u64, earlier: Witness },
    #[error(
        "line {line:?}: {user:?} at place {place} was still waiting at {waiting} when {overtakes} with later places were through, at most {allowed} are allowed; once {overtaker:?} by {admission}"
    )]
    LineOvertaken {
        line: String,
        user: String,
        place: u64,
        waiting: Witness,
        overtakes: u64,
        allowed: u64,
        overtaker: String,
        admission: Witness,
    },
    #[error("line {line:?} admitted {user:?} by {by}, who never asked to enter")]
    AdmittedWithoutEntering { line: String, user: String, by: Witness },
    #[error(
        "line {line:?} admitted {user:?} again by {again}, after {ended} had ended it and without entering anew"
    )]
    AdmittedTwice { line: String, user: String, ended: Witness, again: Witness },
    #[error("line {line:?} has passed {head} places by {later}, after it had passed {higher} by {earlier}")]
    HeadWentBack { line: String, head: u64, later: Witness, higher: u64, earlier: Witness },
    #[error("line {line:?} has admitted {admitted} by {by}, and passed {head} places")]
    MoreAdmittedThanPassed { line: String, admitted: u64, head: u64, by: Witness },
    #[error(
        "line {line:?} lists {listed} admitted places in {listing}, and says that it admitted {admitted} by {by}"
    )]
    AdmittedUncounted { line: String, listed: u64, admitted: u64, by: Witness, listing: Witness },
    #[error(
        "line {line:?} admitted {found} from place {first} to place {last} within {window_ns} ns, of {allowed} in {every_ns} ns"
    )]
    AdmittedTooFast {
        line: String,
        found: u64,
        allowed: u64,
        first: u64,
        last: u64,
        window_ns: u64,
        every_ns: u64,
    },
    #[error("line {line:?} had {active} admitted at once by {by}, of {allowed} at most")]
    TooManyActive { line: String, active: u64, allowed: u64, by: Witness },
    #[error(
        "line {line:?} passed over {user:?} at place {place}, who had been seen by {seen}, {ago_ns} ns before at most"
    )]
    SkippedThoughSeen { line: String, user: String, place: u64, seen: Witness, ago_ns: u64 },
    #[error("line {line:?} passed over {user:?}, who watched all the time by {watching}")]
    SkippedWhileWatching { line: String, user: String, watching: Witness },
    #[error(
        "line {line:?} admitted {user:?} at place {place}, who was waiting at {waiting}, and said by {gone} that it was over, within the grace period"
    )]
    AdmissionLost { line: String, user: String, place: u64, waiting: Witness, gone: Witness },
    #[error(
        "line {line:?} says in {listing} that {user:?} has left place {place}, and {user:?} never asked to"
    )]
    LeftWithoutAsking { line: String, user: String, place: u64, listing: Witness },
    #[error("line {line:?} lost place {place} of {user:?}, acknowledged by {by}: it is not in {listing}")]
    PlaceLost { line: String, user: String, place: u64, by: Witness, listing: Witness },
    #[error(
        "line {line:?} lists place {place} as {fate} in {listing}, and {user:?} was admitted from it by {by}"
    )]
    FateAltered { line: String, user: String, place: u64, fate: &'static str, by: Witness, listing: Witness },
    #[error("line {line:?} has place {place} in {listing}, for which nobody can have asked")]
    PlaceInvented { line: String, place: u64, listing: Witness },
}

/// Lines that contradict each other. The operation is reported and left out of the judgement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A later line without a first one.
    #[error("{0} was never invoked")]
    NeverInvoked(Witness),
    /// Two first lines.
    #[error("{0} was invoked twice")]
    InvokedTwice(Witness),
    /// A line after the end.
    #[error("{0} went on after its end")]
    EndedTwice(Witness),
    /// A line older than the one before it.
    #[error("{0} has a line that is older than the one before it")]
    TimeWentBack(Witness),
    /// An answer that belongs to another call.
    #[error("{0} was given an answer that its call cannot have")]
    MismatchedAnswer(Witness),
    /// A place in a queue for a call that has none.
    #[error("{0} was queued, and its call has no queue")]
    CannotQueue(Witness),
    /// A row in something that is not a listing of such rows.
    #[error("{0} was given a row that its call does not list")]
    StrayRow(Witness),
    /// A listing that says how many rows it has, and has another number.
    #[error("{0} says that it is complete and has another number of rows")]
    MissingRows(Witness),
}
