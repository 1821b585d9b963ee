//! One line of a history.

use serde::{Deserialize, Serialize};

use super::answer::Answer;
use super::call::Call;
use super::row::Row;

/// Something that a process did or learned.
///
/// `{"process":"shop#4242.0","op":7,"at":81000,"step":{"invoke":{"call":"release","lock":"a","fence":3}}}`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Which process, or rather which recorder: a name that is never used twice.
    pub process: String,
    /// Which of its operations.
    pub op: u64,
    /// When, in nanoseconds since the machine booted: the same clock for all processes of one machine.
    pub at: u64,
    /// What.
    pub step: Step,
}

/// How an operation goes on: `invoke`, perhaps `queued` or rows, then at most one of the three ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The request is about to be sent.
    Invoke(Call),
    /// The store has confirmed a place in its queue.
    Queued,
    /// A row of a listing has been read.
    Row(Row),
    /// The gate answered.
    Ok(Answer),
    /// It certainly did not happen, and never will.
    Fail,
    /// No answer: it may have happened, may still happen, or not.
    Unknown,
}
