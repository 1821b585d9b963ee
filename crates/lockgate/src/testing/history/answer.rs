//! What a gate can say, per call and as a file holds it.

use serde::{Deserialize, Serialize};

use super::call::Call;

/// What a gate says to an [`Acquire`](super::Acquire).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcquireAnswer {
    /// The lock is yours.
    Acquired {
        /// The number that a protected resource checks.
        fence: u64,
    },
    /// Somebody else has it, and the wait (if any) is over.
    Denied,
}

/// What a gate says to a [`Renew`](super::Renew).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewAnswer {
    /// The lease starts anew.
    Renewed,
    /// The lock is no longer yours.
    Lost,
}

/// What a gate says to a [`Release`](super::Release).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// It was yours and is free now.
    Released,
    /// It was not yours any more.
    NotHeld,
}

/// What a protected resource says to a [`FencedWrite`](super::FencedWrite).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAnswer {
    /// The write happened.
    Accepted,
    /// A higher fence was seen before.
    Refused,
}

/// What a gate says to an [`Open`](super::Open).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenAnswer {
    /// The total is in force.
    Opened,
    /// The total would lie below what is out already; nothing changed.
    Refused,
}

/// What a gate says to an [`Issue`](super::Issue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IssueAnswer {
    /// A new grant.
    Issued {
        /// Its number within the campaign, from 1.
        seq: u64,
    },
    /// The user had it already, perhaps because this very request was sent twice.
    Already {
        /// The number that was given then.
        seq: u64,
    },
    /// Nothing was granted: sold out, not open, over the limit, ...
    Denied,
}

/// What a gate says to a [`Revoke`](super::Revoke).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevokeAnswer {
    /// The grant is gone.
    Revoked,
    /// There was no such grant.
    NotGranted,
}

/// What a gate says to an [`OpenLine`](super::OpenLine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineOpened;

/// What a gate says to a [`ReadLine`](super::ReadLine).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineStands {
    /// The first place that has not been passed.
    pub head: u64,
    /// How many were ever admitted.
    pub admitted: u64,
    /// How many are admitted.
    pub active: u64,
}

/// What whoever sets a clock says to a [`SetClock`](super::SetClock).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSet;

/// What a gate says to an [`Enter`](super::Enter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The place by arrival: a number that stays, not the shrinking count of those ahead.
    pub place: u64,
}

/// What a gate says to a [`Look`](super::Look).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookAnswer {
    /// Not yet.
    Waiting,
    /// Through.
    Admitted,
    /// Neither: left, expired or never there.
    Gone,
}

/// What a gate says to an [`Admit`](super::Admit).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedUsers {
    /// Who was moved from waiting to admitted by this very call.
    pub users: Vec<String>,
}

/// What a gate says to a [`Leave`](super::Leave).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaveAnswer {
    /// Was in the line, and is not any more.
    Left,
    /// Was not in the line.
    NotInLine,
}

/// What a gate says to a [`Finish`](super::Finish).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishAnswer {
    /// Was admitted, and is not any more.
    Finished,
    /// Was not admitted.
    NotAdmitted,
}

/// The end of a listing. That it is written at all says that the listing is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// How many rows there were.
    pub rows: u64,
}

/// Any answer, as a file holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is explained at the answer type of its call")]
pub enum Answer {
    Acquired { fence: u64 },
    AcquireDenied,
    Renewed,
    RenewLost,
    Released,
    ReleaseNotHeld,
    WriteAccepted,
    WriteRefused,
    Opened,
    OpenRefused,
    Issued { seq: u64 },
    AlreadyIssued { seq: u64 },
    IssueDenied,
    Revoked,
    RevokeNotGranted,
    LineOpened,
    LineStands { head: u64, admitted: u64, active: u64 },
    ClockSet,
    Entered { place: u64 },
    LookWaiting,
    LookAdmitted,
    LookGone,
    AdmittedUsers { users: Vec<String> },
    Left,
    LeaveNotInLine,
    Finished,
    FinishNotAdmitted,
    Listed { rows: u64 },
}

impl Answer {
    /// Whether a gate that was asked `call` can say this at all.
    #[must_use]
    pub fn answers(&self, call: &Call) -> bool {
        match call {
            Call::Acquire(_) => matches!(self, Self::Acquired { .. } | Self::AcquireDenied),
            Call::Renew(_) => matches!(self, Self::Renewed | Self::RenewLost),
            Call::Release(_) => matches!(self, Self::Released | Self::ReleaseNotHeld),
            Call::FencedWrite(_) => matches!(self, Self::WriteAccepted | Self::WriteRefused),
            Call::Open(_) => matches!(self, Self::Opened | Self::OpenRefused),
            Call::Issue(_) => {
                matches!(self, Self::Issued { .. } | Self::AlreadyIssued { .. } | Self::IssueDenied)
            }
            Call::Revoke(_) => matches!(self, Self::Revoked | Self::RevokeNotGranted),
            Call::OpenLine(_) => matches!(self, Self::LineOpened),
            Call::ReadLine(_) => matches!(self, Self::LineStands { .. }),
            Call::SetClock(_) => matches!(self, Self::ClockSet),
            Call::Enter(_) => matches!(self, Self::Entered { .. }),
            Call::Look(_) => matches!(self, Self::LookWaiting | Self::LookAdmitted | Self::LookGone),
            Call::Admit(_) => matches!(self, Self::AdmittedUsers { .. }),
            Call::Leave(_) => matches!(self, Self::Left | Self::LeaveNotInLine),
            Call::Finish(_) => matches!(self, Self::Finished | Self::FinishNotAdmitted),
            Call::ListPlaces(_) | Call::ListGrants(_) | Call::ListLedger(_) => {
                matches!(self, Self::Listed { .. })
            }
        }
    }
}

/// Spells an answer type as [`Answer`], in one line per variant.
macro_rules! answers {
    ($($answer:ty { $($from:pat => $to:expr,)* })*) => {
        $(
            impl From<$answer> for Answer {
                fn from(answer: $answer) -> Self {
                    match answer { $($from => $to,)* }
                }
            }
        )*
    };
}

answers! {
    AcquireAnswer {
        AcquireAnswer::Acquired { fence } => Answer::Acquired { fence },
        AcquireAnswer::Denied => Answer::AcquireDenied,
    }
    RenewAnswer {
        RenewAnswer::Renewed => Answer::Renewed,
        RenewAnswer::Lost => Answer::RenewLost,
    }
    ReleaseAnswer {
        ReleaseAnswer::Released => Answer::Released,
        ReleaseAnswer::NotHeld => Answer::ReleaseNotHeld,
    }
    WriteAnswer {
        WriteAnswer::Accepted => Answer::WriteAccepted,
        WriteAnswer::Refused => Answer::WriteRefused,
    }
    OpenAnswer {
        OpenAnswer::Opened => Answer::Opened,
        OpenAnswer::Refused => Answer::OpenRefused,
    }
    IssueAnswer {
        IssueAnswer::Issued { seq } => Answer::Issued { seq },
        IssueAnswer::Already { seq } => Answer::AlreadyIssued { seq },
        IssueAnswer::Denied => Answer::IssueDenied,
    }
    RevokeAnswer {
        RevokeAnswer::Revoked => Answer::Revoked,
        RevokeAnswer::NotGranted => Answer::RevokeNotGranted,
    }
    LineOpened {
        LineOpened => Answer::LineOpened,
    }
    LineStands {
        LineStands { head, admitted, active } => Answer::LineStands { head, admitted, active },
    }
    ClockSet {
        ClockSet => Answer::ClockSet,
    }
    Entered {
        Entered { place } => Answer::Entered { place },
    }
    LookAnswer {
        LookAnswer::Waiting => Answer::LookWaiting,
        LookAnswer::Admitted => Answer::LookAdmitted,
        LookAnswer::Gone => Answer::LookGone,
    }
    AdmittedUsers {
        AdmittedUsers { users } => Answer::AdmittedUsers { users },
    }
    LeaveAnswer {
        LeaveAnswer::Left => Answer::Left,
        LeaveAnswer::NotInLine => Answer::LeaveNotInLine,
    }
    FinishAnswer {
        FinishAnswer::Finished => Answer::Finished,
        FinishAnswer::NotAdmitted => Answer::FinishNotAdmitted,
    }
    Listed {
        Listed { rows } => Answer::Listed { rows },
    }
}
