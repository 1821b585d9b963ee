//! The judge is judged: bad histories that it must catch, odd ones that it must let pass, and the recorder.

mod legal;
mod model;
mod mutation;
mod recording;
mod size;
mod standing_in_line;
mod violations;

use super::{
    Acquire, Answer, Bounds, Call, Change, Enter, Event, Fate, FencedWrite, GrantRow, History, Issue,
    LedgerRow, ListGrants, ListLedger, ListPlaces, Look, Open, PlaceRow, Release, Renew, Revoke, Row, Step,
    Verdict, check,
};

/// Writes histories by hand. Times are in milliseconds, so that they read like the leases.
#[derive(Default)]
struct Script {
    events: Vec<Event>,
    ops: u64,
}

impl Script {
    fn step(&mut self, op: u64, at_ms: u64, step: Step) {
        self.events.push(Event { process: "p".into(), op, at: at_ms * 1_000_000, step });
    }

    fn invoke(&mut self, at: u64, call: impl Into<Call>) -> u64 {
        self.ops += 1;
        self.step(self.ops, at, Step::Invoke(call.into()));
        self.ops
    }

    fn ok(&mut self, from: u64, until: u64, call: impl Into<Call>, answer: Answer) {
        let op = self.invoke(from, call);
        self.step(op, until, Step::Ok(answer));
    }

    fn queued_ok(&mut self, (from, queued, until): (u64, u64, u64), call: impl Into<Call>, answer: Answer) {
        let op = self.invoke(from, call);
        self.step(op, queued, Step::Queued);
        self.step(op, until, Step::Ok(answer));
    }

    fn fail(&mut self, from: u64, until: u64, call: impl Into<Call>) {
        let op = self.invoke(from, call);
        self.step(op, until, Step::Fail);
    }

    fn unknown(&mut self, from: u64, until: u64, call: impl Into<Call>) {
        let op = self.invoke(from, call);
        self.step(op, until, Step::Unknown);
    }

    /// A complete listing of campaign "c".
    fn list_grants(&mut self, at: u64, rows: &[(&str, u64)]) {
        let rows =
            rows.iter().map(|&(user, seq)| Row::Granted(GrantRow { user: user.into(), seq, quantity: 1 }));
        self.list(at, ListGrants { campaign: "c".into() }, rows.collect());
    }

    /// A complete ledger of campaign "c".
    fn list_ledger(&mut self, at: u64, rows: Vec<LedgerRow>) {
        let rows = rows.into_iter().map(Row::Ledger).collect();
        self.list(at, ListLedger { campaign: "c".into() }, rows);
    }

    /// What became of all places of line "q".
    fn list_places(&mut self, at: u64, fates: &[Fate]) {
        let rows =
            (0..).zip(fates).map(|(place, fate)| Row::Place(PlaceRow { place, fate: *fate })).collect();
        self.list(at, ListPlaces { line: "q".into() }, rows);
    }

    fn list(&mut self, at: u64, call: impl Into<Call>, rows: Vec<Row>) {
        let op = self.invoke(at, call);
        let answer = Answer::Listed { rows: u64::try_from(rows.len()).unwrap() };
        for row in rows {
            self.step(op, at, Step::Row(row));
        }
        self.step(op, at + 1, Step::Ok(answer));
    }

    fn verdict(&self) -> Verdict {
        self.verdict_within(&Bounds::default())
    }

    fn verdict_within(&self, bounds: &Bounds) -> Verdict {
        check(&History::from_events(self.events.clone()), bounds)
    }

    /// The names of what was found.
    fn kinds(&self) -> Vec<String> {
        kinds(&self.verdict())
    }

    fn assert_legal(&self) {
        let verdict = self.verdict();
        assert!(!verdict.is_empty(), "nothing was judged");
        assert!(verdict.violations.is_empty(), "{verdict}");
    }
}

fn kinds(verdict: &Verdict) -> Vec<String> {
    let name = |debug: String| debug.split([' ', '(']).find(|word| *word != "Malformed").map(str::to_owned);
    verdict.violations.iter().filter_map(|violation| name(format!("{violation:?}"))).collect()
}

fn acquire(lease_ms: u64) -> Acquire {
    Acquire { lock: "l".into(), lease_ms }
}

fn acquired(fence: u64) -> Answer {
    Answer::Acquired { fence }
}

fn renew(fence: u64, lease_ms: u64) -> Renew {
    Renew { lock: "l".into(), fence, lease_ms }
}

fn release(fence: u64) -> Release {
    Release { lock: "l".into(), fence }
}

fn write(fence: u64) -> FencedWrite {
    FencedWrite { resource: "r".into(), fence }
}

fn open(quantity: u64) -> Open {
    Open { campaign: "c".into(), quantity, per_user: 1 }
}

fn issue(user: &str) -> Issue {
    Issue { campaign: "c".into(), user: user.into(), quantity: 1 }
}

fn issued(seq: u64) -> Answer {
    Answer::Issued { seq }
}

fn already(seq: u64) -> Answer {
    Answer::AlreadyIssued { seq }
}

fn revoke(user: &str, seq: u64) -> Revoke {
    Revoke { campaign: "c".into(), user: user.into(), seq }
}

fn granted_row(rev: u64, user: &str, seq: u64) -> LedgerRow {
    LedgerRow { rev, change: Change::Grant { user: user.into(), seq }, content: format!("{user}/{seq}") }
}

fn revoked_row(rev: u64, user: &str, seq: u64) -> LedgerRow {
    LedgerRow { rev, change: Change::Revoke { user: user.into(), seq }, content: String::new() }
}

fn other_row(rev: u64) -> LedgerRow {
    LedgerRow { rev, change: Change::Other, content: String::new() }
}

fn enter(user: &str) -> Enter {
    Enter { line: "q".into(), user: user.into() }
}

fn entered(place: u64) -> Answer {
    Answer::Entered { place }
}

fn look(user: &str) -> Look {
    Look { line: "q".into(), user: user.into() }
}
