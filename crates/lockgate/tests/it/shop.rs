//! A shop that writes down what it asked and what it was told, for the judge.

use std::path::Path;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::error::StoreError;
use lockgate::stock::{Coupon, Issue, Terms};
use lockgate::store::{JournalChange, JournalEntry, JournalPosition, Store};
use lockgate::testing::history::{self, Recorder};

/// What every shop here sells.
pub(crate) const COUPON: &str = "c";

#[derive(Clone)]
pub(crate) struct Shop {
    pub(crate) gate: Gate,
    pub(crate) coupon: Coupon,
    recorder: Recorder,
}

impl Shop {
    pub(crate) fn new(gate: Gate, folder: &Path) -> Self {
        let recorder = Recorder::in_folder(folder, "shop", Clock::system()).unwrap();
        Self { coupon: gate.coupon(COUPON).unwrap(), gate, recorder }
    }

    /// Opens the coupon, again if the answer got lost.
    pub(crate) async fn open(&self, quantity: u64) {
        for _ in 0..100 {
            let call = history::Open { campaign: COUPON.into(), quantity, per_user: 1 };
            let pending = self.recorder.invoke(call).unwrap();
            match self.coupon.open(&Terms::new(quantity).unwrap()).await {
                Ok(_) => return pending.ok(history::OpenAnswer::Opened).unwrap(),
                Err(StoreError::UnknownOutcome(_)) => pending.unknown().unwrap(),
                Err(_) => pending.fail().unwrap(),
            }
        }
        panic!("the coupon could not be opened")
    }

    /// One user asks once.
    pub(crate) async fn want(&self, user: &str) -> Result<Issue, StoreError> {
        let call = history::Issue { campaign: COUPON.into(), user: user.into(), quantity: 1 };
        let pending = self.recorder.invoke(call).unwrap();
        let answer = self.coupon.issue(user).await;
        match &answer {
            Ok(Issue::Issued { seq, .. }) => pending.ok(history::IssueAnswer::Issued { seq: *seq }),
            Ok(Issue::AlreadyIssued { seq }) => pending.ok(history::IssueAnswer::Already { seq: *seq }),
            Ok(_) => pending.ok(history::IssueAnswer::Denied),
            Err(StoreError::UnknownOutcome(_)) => pending.unknown(),
            Err(_) => pending.fail(),
        }
        .unwrap();
        answer
    }

    /// What the store holds in the end, and what its journal says.
    pub(crate) async fn take_stock(&self) {
        let entries = self.journal().await;
        let grants = self.recorder.invoke(history::ListGrants { campaign: COUPON.into() }).unwrap();
        let ledger = self.recorder.invoke(history::ListLedger { campaign: COUPON.into() }).unwrap();
        for entry in &entries {
            for row in ledger_rows(entry) {
                if let history::Change::Grant { user, seq } = &row.change {
                    let share = self.coupon.share_of(user).await.unwrap().unwrap();
                    assert_eq!(share.seq, Some(*seq), "the store and its journal disagree about {user}");
                    grants.row(history::GrantRow { user: user.clone(), seq: *seq, quantity: 1 }).unwrap();
                }
                ledger.row(row).unwrap();
            }
        }
        grants.complete().unwrap();
        ledger.complete().unwrap();
        let (status, last) = (self.coupon.status().await.unwrap().unwrap(), entries.last().unwrap());
        assert_eq!(status.rev, last.last_rev(), "a change is missing in the journal");
    }

    async fn journal(&self) -> Vec<JournalEntry> {
        let store: &dyn Store = self.gate.store().as_ref();
        let (mut entries, mut after) = (Vec::new(), JournalPosition::START);
        loop {
            let page = store.journal_read(0, after, 1_000).await.unwrap();
            let Some(last) = page.last() else { return entries };
            after = last.position;
            entries.extend(page);
        }
    }
}

/// An entry as the judge reads it: one row per change.
fn ledger_rows(entry: &JournalEntry) -> Vec<history::LedgerRow> {
    let row = |rev, change| history::LedgerRow { rev, change, content: format!("{:?}", entry.change) };
    match &entry.change {
        JournalChange::Issued { seq, users, .. } => users
            .iter()
            .zip(0..)
            .map(|(user, later)| {
                row(entry.rev + later, history::Change::Grant { user: user.to_string(), seq: seq + later })
            })
            .collect(),
        _ => vec![row(entry.rev, history::Change::Other)],
    }
}
