//! What the operations of those must do who read the journal together.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::stock::{JOURNAL, MOMENT, terms};
use super::{Home, fresh, name};
use crate::key::Name;
use crate::store::{
    Campaign, CampaignKind, JournalEntry, JournalPosition, JournalReader, JournalStanding, JournalTaken,
};

/// A group of readers that is new, and the partition in which they read. Others write there too.
struct Team<'a> {
    home: &'a Home,
    coupon: Campaign,
    group: Name,
}

impl<'a> Team<'a> {
    async fn new(home: &'a Home) -> Self {
        let coupon = home.opened(CampaignKind::Coupon, terms(1_000)).await;
        Team { home, coupon, group: fresh("readers") }
    }

    /// One with these entries in its journal, and everything before them acknowledged.
    async fn with_entries(home: &'a Home, count: usize) -> Self {
        let team = Self::new(home).await;
        team.take_and_acknowledge_all("first").await;
        team.write(count).await;
        team
    }

    async fn write(&self, count: usize) {
        for user in 0..count {
            self.home.issue(&self.coupon, &[&format!("{user}-{}", fresh("user"))]).await;
        }
    }

    fn partition(&self) -> u16 {
        self.home.store.partition_of(self.coupon.home())
    }

    fn reader(&self, reader: &str) -> JournalReader {
        JournalReader { group: self.group.clone(), name: name(reader) }
    }

    async fn take(&self, reader: &str, after: JournalPosition, limit: usize) -> Vec<JournalTaken> {
        let reader = self.reader(reader);
        self.home.store.journal_take(self.partition(), &reader, after, limit).await.unwrap()
    }

    /// Of all that there is for the reader, what concerns our campaign; the rest is acknowledged.
    async fn take_ours(&self, reader: &str) -> Vec<JournalEntry> {
        let (mut ours, mut after) = (Vec::new(), JournalPosition::START);
        loop {
            let piece = self.take(reader, after, 100).await;
            let Some(last) = piece.last() else { return ours };
            after = last.position();
            let (mine, others): (Vec<_>, Vec<_>) =
                entries(piece).into_iter().partition(|entry| entry.campaign == self.coupon);
            let others: Vec<_> = others.iter().map(|entry| entry.position).collect();
            self.acknowledge(&others).await;
            ours.extend(mine);
        }
    }

    async fn acknowledge(&self, positions: &[JournalPosition]) -> u64 {
        self.home.store.journal_acknowledge(self.partition(), &self.group, positions).await.unwrap()
    }

    async fn take_and_acknowledge_all(&self, reader: &str) {
        let ours: Vec<_> = self.take_ours(reader).await.iter().map(|entry| entry.position).collect();
        self.acknowledge(&ours).await;
    }

    async fn standing(&self) -> JournalStanding {
        self.home.store.journal_standing(self.partition(), &self.group).await.unwrap()
    }

    /// A group that is left behind would keep the journal from being trimmed.
    async fn dismiss(self) {
        assert!(self.home.store.journal_dismiss(self.partition(), &self.group).await.unwrap());
    }
}

fn entries(taken: Vec<JournalTaken>) -> Vec<JournalEntry> {
    let entry = |taken| match taken {
        JournalTaken::Entry(entry) => entry,
        other => unreachable!("{other:?}"),
    };
    taken.into_iter().map(entry).collect()
}

fn positions(entries: &[JournalEntry]) -> Vec<JournalPosition> {
    entries.iter().map(|entry| entry.position).collect()
}

/// [`Store::journal_take`](crate::store::Store::journal_take)
pub async fn journal_take(home: &Home) {
    let _kept = JOURNAL.read().await;
    let team = Team::with_entries(home, 20).await;
    let written = home.journal_of(&team.coupon).await;

    // Two share the work: nobody is given what the other has.
    let half = entries(team.take("one", JournalPosition::START, 10).await);
    assert!(half.len() == 10 && half.is_sorted_by(|one, next| one.position < next.position));
    let rest = team.take_ours("two").await;
    assert!(rest.iter().all(|entry| !half.contains(entry)));
    let half_of_ours: Vec<_> = half.iter().filter(|entry| entry.campaign == team.coupon).cloned().collect();
    assert_eq!(
        [half_of_ours, rest.clone()].concat(),
        written[1..],
        "in order, each once, and as it was written"
    );

    // What was not acknowledged is given again, to the same reader only, from where it says.
    assert_eq!(entries(team.take("one", JournalPosition::START, 10).await), half, "an answer that was lost");
    assert_eq!(entries(team.take("one", half[3].position, 2).await), half[4..6]);
    assert_eq!(team.take("one", JournalPosition::START, 0).await, []);
    team.acknowledge(&positions(&half[..4])).await;
    assert_eq!(entries(team.take("one", JournalPosition::START, 10).await), half[4..]);

    // Whoever goes on after what it was given is given what is new.
    team.write(3).await;
    let next = entries(team.take("one", half[9].position, 100).await);
    assert!(next.iter().filter(|entry| entry.campaign == team.coupon).count() == 3, "{next:?}");

    // Another group is given everything.
    let other = Team { home, coupon: team.coupon.clone(), group: fresh("others") };
    assert_eq!(other.take_ours("one").await.len(), 24);
    other.dismiss().await;

    // Two readers of one name are given the same.
    assert_eq!(team.take_ours("two").await, rest);
    team.dismiss().await;
}

/// [`Store::journal_claim`](crate::store::Store::journal_claim)
pub async fn journal_claim(home: &Home) {
    let _kept = JOURNAL.read().await;
    let team = Team::with_entries(home, 5).await;
    let claim = async |reader: &str, idle| {
        home.store.journal_claim(team.partition(), &team.reader(reader), idle).await.unwrap()
    };
    let nobody = JournalReader { group: fresh("nobody"), name: name("one") };
    assert_eq!(home.store.journal_claim(team.partition(), &nobody, Duration::ZERO).await.unwrap(), 0);

    let stranded = team.take_ours("dead").await;
    assert_eq!(stranded.len(), 5);
    assert_eq!(claim("heir", Duration::from_secs(3_600)).await, 0, "it may be alive");
    home.let_pass(MOMENT).await;
    assert_eq!(claim("heir", MOMENT / 2).await, 5);
    assert_eq!(team.take_ours("heir").await, stranded);
    assert_eq!(team.take_ours("dead").await, [], "they are the other one's now");
    assert_eq!(claim("dead", Duration::from_secs(3_600)).await, 0);

    // What is acknowledged is not stranded.
    team.acknowledge(&positions(&stranded[..3])).await;
    home.let_pass(MOMENT).await;
    assert_eq!(claim("third", MOMENT / 2).await, 2);
    assert_eq!(team.take_ours("third").await, stranded[3..]);
    team.dismiss().await;
}

/// [`Store::journal_acknowledge`](crate::store::Store::journal_acknowledge)
pub async fn journal_acknowledge(home: &Home) {
    let _kept = JOURNAL.read().await;
    let team = Team::with_entries(home, 4).await;
    let given = positions(&team.take_ours("one").await);
    assert_eq!(team.acknowledge(&given[1..2]).await, 1);
    assert_eq!(team.acknowledge(&given[..3]).await, 2, "one of them was acknowledged before");
    assert_eq!(team.acknowledge(&given[..3]).await, 0, "a second time is harmless");
    assert_eq!(team.acknowledge(&[]).await, 0);
    assert_eq!(positions(&team.take_ours("one").await), given[3..]);
    let too_many = vec![given[0]; 1_001];
    let refused = home.store.journal_acknowledge(team.partition(), &team.group, &too_many).await;
    assert!(refused.is_err(), "{refused:?}");
    team.dismiss().await;
}

/// [`Store::journal_standing`](crate::store::Store::journal_standing)
pub async fn journal_standing(home: &Home) {
    let _kept = JOURNAL.read().await;
    let team = Team::with_entries(home, 3).await;
    let ours = home.journal_of(&team.coupon).await;
    let before = team.standing().await;
    assert!(before.last >= ours[3].position, "{before:?}");
    let oldest = before.oldest_waiting.unwrap();
    assert!(oldest <= ours[1].position, "nobody was given it yet: {before:?}");

    let given = team.take_ours("one").await;
    let standing = team.standing().await;
    assert_eq!(standing.oldest_waiting, Some(given[0].position), "given is not acknowledged");
    home.let_pass(MOMENT).await;
    let later = team.standing().await;
    assert!(later.behind >= standing.behind + MOMENT - Duration::from_millis(2), "{standing:?} {later:?}");
    assert!(later.behind < Duration::from_secs(60), "{later:?}");

    team.acknowledge(&positions(&given[1..])).await;
    assert_eq!(team.standing().await.oldest_waiting, Some(given[0].position), "the oldest counts");
    team.acknowledge(&positions(&given[..1])).await;
    let done = team.standing().await;
    assert!(done.oldest_waiting.is_none_or(|oldest| oldest > given[2].position), "{done:?}");
    let nobody = home.store.journal_standing(team.partition(), &fresh("nobody")).await.unwrap();
    assert!(nobody.oldest_waiting.unwrap() <= ours[0].position, "a group that is new has all before it");
    team.dismiss().await;
}

/// [`Store::journal_dismiss`](crate::store::Store::journal_dismiss)
pub async fn journal_dismiss(home: &Home) {
    let _alone = JOURNAL.write().await;
    let team = Team::with_entries(home, 3).await;
    let (store, partition, group) = (&home.store, team.partition(), team.group.clone());
    let end = team.standing().await.last;

    // A group keeps what it was not given, and what it has not acknowledged.
    store.journal_trim(partition, end).await.unwrap();
    let given = team.take_ours("one").await;
    assert_eq!(given.len(), 3, "trimmed before anybody was given it");
    team.acknowledge(&positions(&given[..1])).await;
    store.journal_trim(partition, end).await.unwrap();
    assert_eq!(
        home.journal_after(partition, JournalPosition::START).await,
        given[1..],
        "trimmed before it was acknowledged"
    );

    // Nothing is kept for a group that is dismissed.
    assert!(store.journal_dismiss(partition, &group).await.unwrap());
    assert!(!store.journal_dismiss(partition, &group).await.unwrap());
    assert_eq!(store.journal_trim(partition, end).await.unwrap(), 2);
    assert_eq!(home.journal_after(partition, JournalPosition::START).await, []);
}
