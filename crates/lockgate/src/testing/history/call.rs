//! What can be asked of a gate, and what it can answer.
//!
//! Each call is its own type and names its answer ([`Operation::Answer`]), so that a recording test cannot pair
//! an acquire with the answer of a release: that does not compile. In a file they are [`Call`] and [`Answer`],
//! tagged in snake case; a file edited by hand can pair them wrongly, and the checker then says
//! [`Malformed`](super::Malformed).

use serde::{Deserialize, Serialize};

use super::answer::{
    AcquireAnswer, AdmittedUsers, Answer, ClockSet, Entered, FinishAnswer, IssueAnswer, LeaveAnswer,
    LineOpened, LineStands, Listed, LookAnswer, OpenAnswer, ReleaseAnswer, RenewAnswer, RevokeAnswer,
    WriteAnswer,
};
use super::row::{GrantRow, LedgerRow, PlaceRow, Row};

/// A call whose answer is known by its type.
pub trait Operation: Into<Call> {
    /// What the gate may say to it.
    type Answer: Into<Answer>;
}

/// A call that may stand in a queue before it is answered.
pub trait Waits: Operation {}

/// A call that is answered row by row, and is complete only when all of its rows were read.
pub trait Lists: Operation {
    /// One row of the answer.
    type Row: Into<Row>;
}

/// Asks for a lock. Record one per tenure: a nested acquire that re-enters locally is not a new grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acquire {
    /// The lock's name.
    pub lock: String,
    /// How long the grant lasts unless renewed, in milliseconds.
    pub lease_ms: u64,
}

/// Asks for more time on a lock that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renew {
    /// The lock's name.
    pub lock: String,
    /// The fence of the grant.
    pub fence: u64,
    /// How long the grant lasts from now on, in milliseconds.
    pub lease_ms: u64,
}

/// Gives a lock back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The lock's name.
    pub lock: String,
    /// The fence of the grant.
    pub fence: u64,
}

/// Writes to something that a lock protects and that checks the fence by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FencedWrite {
    /// What is written to. Resources are judged one by one; several may be protected by one lock.
    pub resource: String,
    /// The fence that came with the write.
    pub fence: u64,
}

/// Opens a campaign, or changes its total.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// The campaign's name.
    pub campaign: String,
    /// How much there is in all (a total, not what remains).
    pub quantity: u64,
    /// How much one user may have.
    #[serde(default = "one")]
    pub per_user: u64,
}

/// Asks for a part of a campaign's stock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// The campaign's name.
    pub campaign: String,
    /// Who asks.
    pub user: String,
    /// How much.
    #[serde(default = "one")]
    pub quantity: u64,
}

/// Takes a grant back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoke {
    /// The campaign's name.
    pub campaign: String,
    /// Whose grant.
    pub user: String,
    /// Which grant.
    pub seq: u64,
}

/// Opens a line. Record it before anybody enters; a line whose terms change is not judged by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLine {
    /// The line's name.
    pub line: String,
    /// How many it admits together.
    pub batch: u64,
    /// How often it does, in milliseconds.
    pub every_ms: u64,
    /// How many may be admitted at once; without it, any number.
    pub max_active: Option<u64>,
    /// After how long somebody who is not seen may be passed over, in milliseconds; without it, never.
    pub grace_ms: Option<u64>,
    /// For how long somebody is admitted who has shown the ticket, in milliseconds.
    pub pass_ttl_ms: u64,
}

/// Reads how far a line is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadLine {
    /// The line's name.
    pub line: String,
}

/// Sets the clock of a line's store, forward or back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetClock {
    /// The line's name.
    pub line: String,
}

/// Enters a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enter {
    /// The line's name.
    pub line: String,
    /// Who enters.
    pub user: String,
}

/// Asks how it stands with somebody in a line, or waits for the admission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The line's name.
    pub line: String,
    /// Whose place.
    pub user: String,
}

/// Admits those who are next, and learns who they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admit {
    /// The line's name.
    pub line: String,
}

/// Leaves a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leave {
    /// The line's name.
    pub line: String,
    /// Who leaves.
    pub user: String,
}

/// Ends an admission.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// The line's name.
    pub line: String,
    /// Whose.
    pub user: String,
}

/// Reads what became of every place of a line. Take it once nobody waits: who entered and is not in it counts as lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListPlaces {
    /// The line's name.
    pub line: String,
}

/// Reads all grants that the store holds for a campaign. Take it once the store is quiet: what was still under
/// way may or may not be in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListGrants {
    /// The campaign's name.
    pub campaign: String,
}

/// Reads all ledger rows of a campaign. Take it once the ledger has caught up: a row that comes later counts as
/// missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListLedger {
    /// The campaign's name.
    pub campaign: String,
}

/// Any call, as a file holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is the call of the same name")]
pub enum Call {
    Acquire(Acquire),
    Renew(Renew),
    Release(Release),
    FencedWrite(FencedWrite),
    Open(Open),
    Issue(Issue),
    Revoke(Revoke),
    OpenLine(OpenLine),
    ReadLine(ReadLine),
    SetClock(SetClock),
    Enter(Enter),
    Look(Look),
    Admit(Admit),
    Leave(Leave),
    Finish(Finish),
    ListPlaces(ListPlaces),
    ListGrants(ListGrants),
    ListLedger(ListLedger),
}

impl Call {
    /// Whether it can stand in a queue.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self, Self::Acquire(_) | Self::Look(_))
    }

    /// Whether `row` can be a part of its answer.
    #[must_use]
    pub fn lists(&self, row: &Row) -> bool {
        matches!(
            (self, row),
            (Self::ListGrants(_), Row::Granted(_))
                | (Self::ListLedger(_), Row::Ledger(_))
                | (Self::ListPlaces(_), Row::Place(_))
        )
    }
}

/// Ties a call to its variant and to its answer, in one line per call.
macro_rules! operations {
    ($($call:ident -> $answer:ident,)*) => {
        $(
            impl Operation for $call {
                type Answer = $answer;
            }

            impl From<$call> for Call {
                fn from(call: $call) -> Self {
                    Self::$call(call)
                }
            }
        )*
    };
}

operations! {
    Acquire -> AcquireAnswer,
    Renew -> RenewAnswer,
    Release -> ReleaseAnswer,
    FencedWrite -> WriteAnswer,
    Open -> OpenAnswer,
    Issue -> IssueAnswer,
    Revoke -> RevokeAnswer,
    OpenLine -> LineOpened,
    ReadLine -> LineStands,
    SetClock -> ClockSet,
    Enter -> Entered,
    Look -> LookAnswer,
    Admit -> AdmittedUsers,
    Leave -> LeaveAnswer,
    Finish -> FinishAnswer,
    ListPlaces -> Listed,
    ListGrants -> Listed,
    ListLedger -> Listed,
}

impl Waits for Acquire {}
impl Waits for Look {}

impl Lists for ListGrants {
    type Row = GrantRow;
}

impl Lists for ListLedger {
    type Row = LedgerRow;
}

impl Lists for ListPlaces {
    type Row = PlaceRow;
}

/// What most people ask for, and what a line of an older file means when it does not say.
pub(super) fn one() -> u64 {
    1
}
