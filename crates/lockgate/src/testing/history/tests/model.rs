//! Histories of a world that is right by construction always pass.
//!
//! The world does one thing at a time. What is recorded of it is blurred: each request was sent some time before
//! its effect and answered some time after, some answers get lost, some requests fail before they are sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, proptest};

use super::{
    Answer, Bounds, Call, History, LedgerRow, Script, Step, acquire, acquired, already, check, enter,
    entered, granted_row, issue, issued, look, open, other_row, release, renew, revoke, revoked_row, write,
};
use crate::testing::history::{Admit, Event, Leave};

/// What the world does next, and how it is blurred.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    action: Action,
    /// Selects a user, a number, a lease: whatever the action needs.
    pick: u8,
    before: u8,
    after: u8,
    fate: Fate,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Acquire,
    Release,
    Renew,
    OutliveTheLease,
    Write,
    Issue,
    Revoke,
    Open,
    Enter,
    Admit,
    Look,
    Leave,
}

/// What the caller learns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Answered,
    /// The answer to the first sending got lost, the one to the second came.
    SentTwice,
    /// It never left.
    Failed,
    Unknown,
    Killed,
}

pub(super) fn choices(length: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Choice>> {
    let action = proptest::sample::select(vec![
        Action::Acquire,
        Action::Acquire,
        Action::Acquire,
        Action::Release,
        Action::Release,
        Action::Renew,
        Action::OutliveTheLease,
        Action::Write,
        Action::Write,
        Action::Issue,
        Action::Issue,
        Action::Issue,
        Action::Revoke,
        Action::Open,
        Action::Enter,
        Action::Enter,
        Action::Admit,
        Action::Look,
        Action::Leave,
    ]);
    let fate = proptest::prop_oneof![
        8 => Just(Fate::Answered),
        1 => Just(Fate::SentTwice),
        1 => Just(Fate::Failed),
        1 => Just(Fate::Unknown),
        1 => Just(Fate::Killed),
    ];
    let choice = (action, any::<u8>(), 0..60_u8, 0..60_u8, fate);
    let choice =
        choice.prop_map(|(action, pick, before, after, fate)| Choice { action, pick, before, after, fate });
    proptest::collection::vec(choice, length)
}

/// What happened, in a world that does as it is told.
pub(super) fn history_of(choices: &[Choice]) -> Vec<Event> {
    let mut world = World::open_for_business();
    for choice in choices {
        world.now += 10;
        world.hand_over_if_free();
        if choice.fate == Fate::Failed {
            world.fail(*choice);
        } else {
            world.act(*choice);
        }
    }
    world.close()
}

struct World {
    script: Script,
    now: u64,
    holder: Option<Holder>,
    queue: VecDeque<Waiter>,
    last_fence: u64,
    written_fence: u64,
    total: u64,
    grants: BTreeMap<String, u64>,
    last_seq: u64,
    ledger: Vec<LedgerRow>,
    line: BTreeMap<u64, String>,
    last_place: u64,
    through: BTreeSet<String>,
}

struct Holder {
    fence: u64,
    until: u64,
}

struct Waiter {
    op: u64,
    arrived: u64,
    lease: u64,
    choice: Choice,
}

impl World {
    fn open_for_business() -> Self {
        let mut script = Script::default();
        script.ok(0, 1, open(5), Answer::Opened);
        Self {
            script,
            now: 100,
            holder: None,
            queue: VecDeque::new(),
            last_fence: 0,
            written_fence: 0,
            total: 5,
            grants: BTreeMap::new(),
            last_seq: 0,
            ledger: vec![other_row(1)],
            line: BTreeMap::new(),
            last_place: 0,
            through: BTreeSet::new(),
        }
    }

    fn act(&mut self, choice: Choice) {
        match choice.action {
            Action::Acquire => self.acquire(choice),
            Action::Release => self.release(choice),
            Action::Renew => self.renew(choice),
            Action::OutliveTheLease => self.outlive_the_lease(),
            Action::Write => self.write(choice),
            Action::Issue => self.issue(choice),
            Action::Revoke => self.revoke(choice),
            Action::Open => self.open(choice),
            Action::Enter => self.enter(choice),
            Action::Admit => self.admit(choice),
            Action::Look => self.look(choice),
            Action::Leave => self.leave(choice),
        }
    }

    /// A request that never left has no effect, whoever it was from.
    fn fail(&mut self, choice: Choice) {
        let from = self.now - u64::from(choice.before);
        match choice.action {
            Action::Issue => self.script.fail(from, self.now, issue("never-sent")),
            Action::Write => self.script.fail(from, self.now, write(u64::MAX)),
            _ => self.script.fail(from, self.now, acquire(u64::MAX)),
        }
    }

    /// Records something that takes effect now.
    fn record(&mut self, choice: Choice, call: impl Into<Call>, answer: Answer) {
        let op = self.script.invoke(self.now - u64::from(choice.before), call);
        self.end(op, self.now + u64::from(choice.after), choice.fate, answer);
    }

    fn end(&mut self, op: u64, at: u64, fate: Fate, answer: Answer) {
        match fate {
            Fate::Answered | Fate::SentTwice => self.script.step(op, at, Step::Ok(answer)),
            Fate::Unknown => self.script.step(op, at, Step::Unknown),
            Fate::Failed | Fate::Killed => {}
        }
    }

    fn acquire(&mut self, choice: Choice) {
        let lease = 20 + u64::from(choice.pick);
        let op = self.script.invoke(self.now - u64::from(choice.before), acquire(lease));
        let waiter = Waiter { op, arrived: self.now, lease, choice };
        if self.holder.is_some() {
            self.script.step(op, self.now + u64::from(choice.after), Step::Queued);
            self.queue.push_back(waiter);
        } else {
            self.grant(&waiter);
        }
    }

    fn grant(&mut self, waiter: &Waiter) {
        self.last_fence += 1 + u64::from(waiter.choice.pick % 3);
        self.holder = Some(Holder { fence: self.last_fence, until: self.now + waiter.lease });
        let at = self.now.max(waiter.arrived) + u64::from(waiter.choice.after);
        self.end(waiter.op, at, waiter.choice.fate, acquired(self.last_fence));
    }

    fn hand_over_if_free(&mut self) {
        if self.holder.as_ref().is_some_and(|holder| holder.until <= self.now) {
            self.holder = None;
        }
        if self.holder.is_none()
            && let Some(waiter) = self.queue.pop_front()
        {
            self.grant(&waiter);
        }
    }

    fn release(&mut self, choice: Choice) {
        if let Some(holder) = self.holder.take() {
            self.record(choice, release(holder.fence), Answer::Released);
            self.hand_over_if_free();
        } else {
            self.record(choice, release(self.last_fence), Answer::ReleaseNotHeld);
        }
    }

    fn renew(&mut self, choice: Choice) {
        let lease = 20 + u64::from(choice.pick);
        let (fence, answer) = match &mut self.holder {
            Some(holder) => {
                holder.until = self.now + lease;
                (holder.fence, Answer::Renewed)
            }
            None => (self.last_fence, Answer::RenewLost),
        };
        self.record(choice, renew(fence, lease), answer);
    }

    fn outlive_the_lease(&mut self) {
        self.now = self.holder.as_ref().map_or(self.now, |holder| holder.until.max(self.now));
        self.hand_over_if_free();
    }

    fn write(&mut self, choice: Choice) {
        let fence = self.last_fence.saturating_sub(u64::from(choice.pick % 5));
        let accepted = fence >= self.written_fence;
        self.written_fence = self.written_fence.max(fence);
        self.record(
            choice,
            write(fence),
            if accepted { Answer::WriteAccepted } else { Answer::WriteRefused },
        );
    }

    fn issue(&mut self, choice: Choice) {
        let user = format!("user-{}", choice.pick % 12);
        let answer = if let Some(seq) = self.grants.get(&user) {
            already(*seq)
        } else if self.grants.len() < usize::try_from(self.total).unwrap() {
            self.last_seq += 1;
            self.grants.insert(user.clone(), self.last_seq);
            self.ledger.push(granted_row(self.next_rev(), &user, self.last_seq));
            if choice.fate == Fate::SentTwice { already(self.last_seq) } else { issued(self.last_seq) }
        } else {
            Answer::IssueDenied
        };
        self.record(choice, issue(&user), answer);
    }

    fn revoke(&mut self, choice: Choice) {
        let nth = usize::from(choice.pick) % self.grants.len().max(1);
        let Some((user, seq)) = self.grants.clone().into_iter().nth(nth) else { return };
        self.grants.remove(&user);
        self.ledger.push(revoked_row(self.next_rev(), &user, seq));
        let sent_twice = choice.fate == Fate::SentTwice;
        let answer = if sent_twice { Answer::RevokeNotGranted } else { Answer::Revoked };
        self.record(choice, revoke(&user, seq), answer);
    }

    fn open(&mut self, choice: Choice) {
        let total = u64::from(choice.pick % 12);
        if usize::try_from(total).unwrap() < self.grants.len() {
            return self.record(choice, open(total), Answer::OpenRefused);
        }
        self.total = total;
        self.ledger.push(other_row(self.next_rev()));
        self.record(choice, open(total), Answer::Opened);
    }

    fn next_rev(&self) -> u64 {
        u64::try_from(self.ledger.len()).unwrap() + 1
    }

    fn enter(&mut self, choice: Choice) {
        let user = format!("user-{}", choice.pick % 12);
        let place = self.line.iter().find(|(_, waiting)| **waiting == user).map(|(place, _)| *place);
        let place = place.unwrap_or_else(|| {
            self.last_place += 1;
            self.through.remove(&user);
            self.line.insert(self.last_place, user.clone());
            self.last_place
        });
        self.record(choice, enter(&user), entered(place));
    }

    fn admit(&mut self, choice: Choice) {
        let mut users = Vec::new();
        for _ in 0..=choice.pick % 3 {
            users.extend(self.line.pop_first().map(|(_, user)| user));
        }
        self.through.extend(users.iter().cloned());
        self.record(choice, Admit { line: "q".into() }, Answer::AdmittedUsers { users });
    }

    fn look(&mut self, choice: Choice) {
        let user = format!("user-{}", choice.pick % 12);
        let answer = if self.through.contains(&user) {
            Answer::LookAdmitted
        } else if self.line.values().any(|waiting| *waiting == user) {
            Answer::LookWaiting
        } else {
            Answer::LookGone
        };
        self.record(choice, look(&user), answer);
    }

    fn leave(&mut self, choice: Choice) {
        let user = format!("user-{}", choice.pick % 12);
        let before = self.line.len();
        self.line.retain(|_, waiting| *waiting != user);
        let answer = if self.line.len() < before { Answer::Left } else { Answer::LeaveNotInLine };
        self.record(choice, Leave { line: "q".into(), user }, answer);
    }

    fn close(mut self) -> Vec<Event> {
        let end = self.now + 1_000;
        let rows: Vec<(&str, u64)> = self.grants.iter().map(|(user, seq)| (user.as_str(), *seq)).collect();
        self.script.list_grants(end, &rows);
        self.script.list_ledger(end + 10, self.ledger);
        self.script.events
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_world_that_does_one_thing_at_a_time_always_passes(choices in choices(0..200)) {
        let verdict = check(&History::from_events(history_of(&choices)), &Bounds::default());
        prop_assert!(!verdict.is_empty());
        prop_assert!(verdict.violations.is_empty(), "{verdict}");
    }
}
