//! The ledger on bad days: writers that are killed, databases that go away. Each time, those who were told that they have a
//! coupon are exactly those whom the ledger names.
//!
//! ```text
//! crowd       buys until it is told to stop, and remembers what it was told
//! process     a writer in a process of its own, to be killed
//! killed      processes that die in the middle
//! database    databases that die, hang, lock or cut connections
//! journal     stores that die, start again, or have many partitions
//! stopping    writers that are asked to stop
//! ```
//!
//! Every test ends with [`judge`], which asks the tables in plain SQL and trusts nobody.

use std::time::Duration;

use lockgate::Gate;
use lockgate::ledger::{Light, WriterStatus};
use lockgate::store::JournalPosition;

use super::base::Base;
use super::{coupon, finish, name, quick, winners};

mod crowd;
mod database;
mod journal;
mod killed;
mod process;
mod stopping;

use self::crowd::{Crowd, Told};

/// Writes what is left, with a writer of its own.
async fn drain(base: &Base, gate: &Gate) -> WriterStatus {
    finish(base.ledger().await.start(gate.store(), quick()).unwrap()).await
}

/// The oldest entry of a journal with one partition that the ledger has not acknowledged.
async fn oldest_waiting(gate: &Gate) -> Option<JournalPosition> {
    gate.store().journal_standing(0, &name("ledger")).await.unwrap().oldest_waiting
}

/// Those who were told are those whom the tables name, each once; every change is there, and nothing else.
async fn judge(base: &Base, gate: &Gate, told: &Told) {
    assert!(told.values().all(|told| told.len() > 100), "hardly anybody came: nothing was tested");
    let (ledger, sql) = (base.ledger().await, base.sql().await);
    for (called, told) in told {
        let users = format!(
            "SELECT l.user_id FROM lockgate_ledger l JOIN lockgate_campaigns c ON c.id = l.campaign \
             WHERE c.name = '{called}' AND l.what = 'issued' ORDER BY l.seq"
        );
        // Not assert_eq: thousands of names help nobody.
        let (named, expected) = (sql.texts(&users).await, told.values().cloned().collect::<Vec<_>>());
        let differs = expected.iter().zip(&named).position(|(told, named)| told != named);
        let (told_to, named_are) = (expected.len(), named.len());
        assert!(named == expected, "{called}: told {told_to}, named {named_are}, first other: {differs:?}");
        assert!(winners(&ledger, &coupon(called)).await == *told, "{called}: other numbers than were told");
    }
    let not_dense = "SELECT COUNT(*) FROM (SELECT campaign FROM lockgate_ledger GROUP BY campaign \
         HAVING COUNT(*) <> MAX(rev) OR COUNT(DISTINCT rev) <> MAX(rev) OR MIN(rev) <> 1) AS g";
    assert_eq!(sql.number(not_dense).await, 0, "a gap or a double");
    let all = i64::try_from(told.values().map(|told| told.len() + 1).sum::<usize>()).unwrap();
    assert_eq!(sql.number("SELECT COUNT(*) FROM lockgate_ledger").await, all, "each grant, and each opening");
    assert_eq!(sql.number("SELECT COUNT(*) FROM lockgate_dead_letters").await, 0);
    let audit = ledger.audit(gate.store().as_ref()).await.unwrap();
    assert!(audit.light() == Light::Green, "{:?}", audit.campaigns);
    assert!(audit.campaigns.iter().all(|campaign| campaign.in_flight == 0), "not drained");
}

/// For how long the tests give a bad day to pass.
const SOON: Duration = Duration::from_secs(30);
