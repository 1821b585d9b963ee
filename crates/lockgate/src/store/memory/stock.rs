//! What one step on the stock works with, and the batches that were answered.

use std::collections::HashMap;
use std::fmt;

use super::epoch::Rebuilding;
use super::journal::Journal;
use super::order::Orders;
use super::shelf::Shelves;
use crate::clock::{Moment, Timestamp};
use crate::error::StoreError;
use crate::store::{
    CampaignChanged, CampaignOpen, HoldPlace, HoldSettle, Issue, OrderPlace, Purchase, Revoke, SENDING_KEPT,
    Sending, Token, late_copy,
};

/// What one step on the stock works with.
pub(in crate::store::memory) struct Stock<'a> {
    pub(in crate::store::memory) shelves: &'a mut Shelves,
    pub(in crate::store::memory) orders: &'a mut Orders,
    pub(in crate::store::memory) journal: &'a mut Journal,
    pub(in crate::store::memory) rebuilding: &'a mut Rebuilding,
    pub(in crate::store::memory) now: Timestamp,
}

/// The answers to the last batch of each slot.
pub(in crate::store::memory) struct Sendings {
    slots: HashMap<(Token, u16), Sent>,
    /// With so many slots it is worth looking for old ones: twice as many as were left the last time.
    purge_at: usize,
}

impl Default for Sendings {
    fn default() -> Self {
        Self { slots: HashMap::new(), purge_at: MANY }
    }
}

struct Sent {
    number: u64,
    at: Moment,
    answers: Answers,
}

/// Fewer slots than this are never worth a look.
const MANY: usize = 1_024;

impl Sendings {
    /// The answers of `sending` if it was answered before; otherwise what `decide` says.
    pub(in crate::store::memory) fn once<T: Answered>(
        &mut self,
        sending: &Sending,
        now: Moment,
        decide: impl FnOnce() -> T,
    ) -> Result<T, StoreError> {
        if sending.number == 0 {
            return Ok(decide());
        }
        let slot = (sending.process, sending.slot);
        match self.slots.get(&slot).filter(|sent| now.since(sent.at) < SENDING_KEPT) {
            Some(sent) if sent.number == sending.number => {
                if let Some(answers) = T::of(&sent.answers) {
                    return Ok(answers);
                }
                return Err(StoreError::Refused(
                    "the number of a batch was used for another operation".into(),
                ));
            }
            Some(sent) if sent.number > sending.number => return Err(late_copy()),
            _ => {}
        }
        let answers = decide();
        if self.slots.len() >= self.purge_at {
            self.slots.retain(|_, sent| now.since(sent.at) < SENDING_KEPT);
            self.purge_at = (2 * self.slots.len()).max(MANY);
        }
        self.slots.insert(slot, Sent { number: sending.number, at: now, answers: answers.keep() });
        Ok(answers)
    }
}

impl fmt::Debug for Sendings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slots", self.slots.len())
    }
}

/// Answers that can be kept.
pub(in crate::store::memory) trait Answered: Sized {
    fn keep(&self) -> Answers;
    fn of(answers: &Answers) -> Option<Self>;
}

macro_rules! answered {
    ($($variant:ident = $answers:ty),+ $(,)?) => {
        /// The answers to a batch of some operation.
        pub(in crate::store::memory) enum Answers { $($variant($answers)),+ }

        $(
            impl Answered for $answers {
                fn keep(&self) -> Answers {
                    Answers::$variant(self.clone())
                }

                fn of(answers: &Answers) -> Option<Self> {
                    match answers {
                        Answers::$variant(answers) => Some(answers.clone()),
                        _ => None,
                    }
                }
            }
        )+
    };
}

answered! {
    Opened = CampaignOpen,
    Changed = CampaignChanged,
    Issues = Vec<Issue>,
    Purchases = Vec<Purchase>,
    Places = Vec<HoldPlace>,
    Settles = Vec<HoldSettle>,
    Revokes = Vec<Revoke>,
    Orders = Vec<OrderPlace>,
}
