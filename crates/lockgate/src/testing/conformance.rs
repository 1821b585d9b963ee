//! What every store must do: one function per operation, run on every home of the [`Store`] contract.
//!
//! The suite knows the contract and nothing else. A store passes it by
//!
//! ```
//! use lockgate::conformance_suite;
//! use lockgate::testing::conformance::Home;
//!
//! mod memory {
//!     # use super::*;
//!     conformance_suite!(async { Home::embedded() });
//! }
//! # fn main() {}
//! ```
//!
//! which makes one test per operation, with the operation's name. Each function makes up names of its own, so that
//! all of them can run at once on one server. Every answer in it is an assertion, so they panic, as tests do.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::key::Name;
use crate::store::memory::MemoryStore;
use crate::store::{Lease, Store, Token};

mod campaign;
mod coupon;
mod deal;
mod ear;
mod epoch;
mod hold;
mod hold_settling;
mod journal;
mod journal_readers;
mod keeping;
mod latch;
mod line;
mod line_admitting;
mod line_drawing;
mod line_entering;
mod line_going_on;
mod mutex;
mod mutex_handing_on;
mod mutex_together;
mod order;
mod order_across;
mod order_deciding;
mod pass;
mod permit;
mod permit_handing_on;
mod permit_keeping;
mod revoke;
mod stock;
mod ticket;

pub use self::campaign::{campaign_change, campaign_list, campaign_open, campaign_read, share_read};
pub use self::coupon::coupon_issue;
pub use self::deal::deal_purchase;
pub use self::epoch::{campaign_rebuild, campaign_reopen, epoch_read, epoch_settle};
pub use self::hold::hold_place;
pub use self::hold_settling::{hold_read, hold_settle};
pub use self::journal::{journal_read, journal_trim};
pub use self::journal_readers::{
    journal_acknowledge, journal_claim, journal_dismiss, journal_standing, journal_take,
};
pub use self::keeping::{campaign_forget, user_erase};
pub use self::latch::{latch_count_down, latch_read, latch_set};
pub use self::line::{line_change, line_forget, line_list, line_open, line_read};
pub use self::line_admitting::line_admit;
pub use self::line_drawing::{line_arrivals, line_draw};
pub use self::line_entering::line_enter;
pub use self::line_going_on::line_tick;
pub use self::mutex::{mutex_acquire, mutex_renew};
pub use self::mutex_handing_on::{mutex_break, mutex_read, mutex_release, mutex_yield};
pub use self::mutex_together::{mutex_acquire_all, mutex_raise};
pub use self::order::{order_place, order_read};
pub use self::order_across::{order_doubts, order_reserve, order_settle};
pub use self::order_deciding::{order_decide, order_find};
pub use self::permit::permit_acquire;
pub use self::permit_handing_on::{permit_break, permit_read, permit_release};
pub use self::permit_keeping::{permit_renew, permit_resize, permit_shrink};
pub use self::revoke::grant_revoke;
pub use self::ticket::{ticket_finish, ticket_leave, ticket_renew, ticket_show};

/// Makes one `#[tokio::test]` per operation of the contract. Takes an expression for a future of a [`Home`].
#[macro_export]
macro_rules! conformance_suite {
    ($home:expr) => {
        $crate::conformance_suite! { $home =>
            mutex_acquire mutex_renew mutex_release mutex_yield mutex_read mutex_break
            mutex_acquire_all mutex_raise
            permit_acquire permit_renew permit_release permit_shrink permit_resize permit_read permit_break
            latch_set latch_count_down latch_read
            line_open line_change line_admit line_read line_list line_forget line_enter line_tick
            ticket_show ticket_leave ticket_finish ticket_renew line_arrivals line_draw
            campaign_open campaign_change campaign_read campaign_list share_read
            epoch_read epoch_settle campaign_reopen campaign_rebuild campaign_forget user_erase
            coupon_issue deal_purchase grant_revoke
            hold_place hold_settle hold_read order_place order_read
            journal_read journal_take journal_claim journal_acknowledge journal_standing journal_dismiss
            journal_trim
        }
    };
    ($home:expr => $($operation:ident)+) => {
        $(
            #[tokio::test]
            async fn $operation() {
                $crate::testing::conformance::$operation(&$home.await).await;
            }
        )+
    };
}

/// The same for the operations that only a store with partitions has: where there is one, no order is over several.
#[macro_export]
macro_rules! conformance_suite_of_partitions {
    ($home:expr) => {
        $crate::conformance_suite! { $home =>
            order_reserve order_decide order_settle order_doubts order_find
        }
    };
}

/// A store under test, and its clock.
#[derive(Debug)]
pub struct Home {
    store: Arc<dyn Store>,
    clock: Clock,
    time_can_be_moved: bool,
    journal: stock::KnownJournal,
}

impl Home {
    /// The embedded store, with a clock that moves only when told.
    #[must_use]
    pub fn embedded() -> Self {
        let clock = Clock::fake();
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self { store, clock, time_can_be_moved: true, journal: stock::KnownJournal::default() }
    }

    /// A store that goes by the clock of this machine. Its time cannot be moved, only waited for; the suite needs
    /// about two seconds of it.
    #[must_use]
    pub fn on_this_machine(store: Arc<dyn Store>) -> Self {
        let (clock, journal) = (Clock::system(), stock::KnownJournal::default());
        Self { store, clock, time_can_be_moved: false, journal }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Whether it is a store whose server may be another one tomorrow, so that it keeps what is missing.
    fn forgets(&self) -> bool {
        !self.time_can_be_moved
    }

    /// Returns when so much time has passed for the store.
    async fn let_pass(&self, time: Duration) {
        if self.time_can_be_moved {
            return self.clock.advance(time);
        }
        let start = self.clock.monotonic();
        while self.clock.monotonic().since(start) < time {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Runs parts of a test that have nothing to do with each other: at the same time, if time cannot be moved and they would wait
/// for each other's.
macro_rules! each_for_itself {
    ($home:ident: $($part:ident),+ $(,)?) => {
        if $home.time_can_be_moved {
            $($part($home).await;)+
        } else {
            tokio::join!($($part($home)),+);
        }
    };
}
use each_for_itself;

/// A name that nobody else uses.
fn fresh(what: &str) -> Name {
    name(&format!("{what}:{}", Token::random()))
}

fn name(text: &str) -> Name {
    Name::new("name", text).unwrap()
}

fn lease(millis: u64) -> Lease {
    Lease::new(Duration::from_millis(millis)).unwrap()
}

/// Names that have broken key formats before. Each must be itself, and no other.
fn nasty_names(prefix: &Name) -> Vec<Name> {
    let nasty = [
        "", "{", "}", "{}", "{0}", "}{", ":", "::", "%", "%7B", "%25", "\0", "\n", "\r\n", " ", "🎟", "é",
        "e\u{301}", "*", "'", "\"", "\\", "users", "h:", "-1", "0",
    ];
    let long = "{".repeat(10_240);
    nasty.into_iter().chain([long.as_str()]).map(|text| name(&format!("{prefix}{text}"))).collect()
}
