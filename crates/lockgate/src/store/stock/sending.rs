//! One sending of a batch, and how a store knows a second one of it.

use std::time::Duration;

use super::OrderWish;
use crate::error::{InvalidInput, StoreError};
use crate::store::Token;

/// How many wishes one call takes. A script blocks Redis while it runs, and a thousand wishes are about two milliseconds.
pub const MAX_BATCH: usize = 1_000;

/// For how long a store remembers the last batch of a slot.
pub const SENDING_KEPT: Duration = Duration::from_secs(60);

/// Which batch this is. The store remembers the last answer of each slot: the same number again is answered again and not
/// done again, and a lower number is refused, because it is a late copy of a batch whose sender has gone on.
///
/// So a slot is used for one batch at a time, and every batch has a higher number than the one before. What has no wishes is
/// no batch: it is answered with nothing, and its slot has not been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// Whose slot: one process has one name, new with every start.
    pub process: Token,
    /// Which of the process's slots.
    pub slot: u16,
    /// The number of the batch, below 2^53. A batch with 0 is sent once only, and need not be remembered.
    pub number: u64,
}

impl Sending {
    /// The sending of a single call, with a slot of its own: it may be sent again, and is done once.
    #[must_use]
    pub fn once() -> Self {
        Self { process: Token::random(), slot: 0, number: 1 }
    }

    /// A sending that cannot get lost, to a store that [answers at once](crate::store::Store::answers_at_once).
    pub(crate) const fn that_cannot_get_lost() -> Self {
        Self { process: Token::from_bits(0), slot: 0, number: 0 }
    }
}

/// Refuses a batch that would keep a store busy for too long.
pub(crate) fn check_batch<T>(wishes: &[T]) -> Result<(), InvalidInput> {
    check_length(wishes.len())
}

/// The same for orders, which are as long as their items.
pub(crate) fn check_orders(orders: &[OrderWish]) -> Result<(), InvalidInput> {
    check_length(orders.iter().map(|order| order.items().len()).sum())
}

fn check_length(length: usize) -> Result<(), InvalidInput> {
    if length > MAX_BATCH {
        let problem = format!("{length} in one call; at most {MAX_BATCH} are allowed");
        return Err(InvalidInput::new("wishes", problem));
    }
    Ok(())
}

/// The error for a batch whose sender has gone on since.
pub(crate) fn late_copy() -> StoreError {
    StoreError::Refused("this is a late copy of a batch; its slot has been used for a later one".into())
}
