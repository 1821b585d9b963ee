//! What the operations on count-down latches must do.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use super::{Home, fresh, nasty_names};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{LatchSet, LatchStatus, MAX_LATCH, Token};

/// Long enough for news that should not come.
const A_WHILE: Duration = Duration::from_millis(20);

impl Home {
    async fn sets(&self, latch: &Name, count: u32) -> LatchSet {
        self.store.latch_set(latch, count, &Token::random()).await.unwrap()
    }

    /// In the round that it is in.
    async fn counts_down(&self, latch: &Name, token: Token) -> Option<(u32, u32)> {
        let round =
            self.store.latch_read(latch).await.unwrap().map_or(Token::random(), |status| status.round);
        self.counts_down_in(latch, token, round).await
    }

    async fn counts_down_in(&self, latch: &Name, token: Token, round: Token) -> Option<(u32, u32)> {
        shown(self.store.latch_count_down(latch, &token, &round).await.unwrap())
    }

    async fn latch(&self, latch: &Name) -> Option<(u32, u32)> {
        shown(self.store.latch_read(latch).await.unwrap())
    }
}

fn shown(status: Option<LatchStatus>) -> Option<(u32, u32)> {
    status.map(|status| (status.count, status.remaining))
}

fn standing(count: u32, remaining: u32) -> Option<(u32, u32)> {
    Some((count, remaining))
}

/// [`Store::latch_set`](crate::store::Store::latch_set)
pub async fn latch_set(home: &Home) {
    let latch = fresh("latch");
    assert_eq!(home.sets(&latch, 2).await, LatchSet::Set);
    assert_eq!(home.latch(&latch).await, standing(2, 2));
    // One that counts down is left alone.
    let (alice, bob) = (Token::random(), Token::random());
    let counting = async || match home.sets(&latch, 5).await {
        LatchSet::Counting(status) => shown(Some(status)),
        LatchSet::Set => None,
    };
    assert_eq!(counting().await, standing(2, 2));
    home.counts_down(&latch, alice).await;
    assert_eq!(counting().await, standing(2, 1));
    assert_eq!(home.latch(&latch).await, standing(2, 1));
    // One that is open can be set anew, and has forgotten who came.
    home.counts_down(&latch, bob).await;
    assert_eq!(home.sets(&latch, 3).await, LatchSet::Set);
    assert_eq!(home.latch(&latch).await, standing(3, 3));
    assert_eq!(home.counts_down(&latch, alice).await, standing(3, 2));

    a_round_is_set_once(home).await;
    for count in [0, MAX_LATCH + 1] {
        let latch = fresh("latch");
        let refused = home.store.latch_set(&latch, count, &Token::random()).await;
        assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{count}: {refused:?}");
        assert_eq!(home.latch(&latch).await, None);
    }
    assert_eq!(home.sets(&fresh("latch"), MAX_LATCH).await, LatchSet::Set);
}

/// Sent again when it has counted down already, it must not begin anew.
async fn a_round_is_set_once(home: &Home) {
    let (latch, round) = (fresh("latch"), Token::random());
    let set = async || home.store.latch_set(&latch, 1, &round).await.unwrap();
    assert_eq!((set().await, set().await), (LatchSet::Set, LatchSet::Set));
    assert_eq!(home.store.latch_read(&latch).await.unwrap().unwrap().round, round);
    home.counts_down(&latch, Token::random()).await;
    assert_eq!(set().await, LatchSet::Set);
    assert_eq!(home.latch(&latch).await, standing(1, 0), "set anew");
}

/// [`Store::latch_count_down`](crate::store::Store::latch_count_down)
pub async fn latch_count_down(home: &Home) {
    who_counts_in_a_round_that_is_over_is_not_counted(home).await;
    each_token_is_counted_once(home).await;
    all_hear_once_that_a_latch_opens(home).await;
    of_many_at_once_each_is_counted(home).await;
}

async fn who_counts_in_a_round_that_is_over_is_not_counted(home: &Home) {
    let (latch, alice) = (fresh("latch"), Token::random());
    home.sets(&latch, 1).await;
    let round = home.store.latch_read(&latch).await.unwrap().unwrap().round;
    assert_eq!(home.counts_down_in(&latch, alice, round).await, standing(1, 0));
    home.sets(&latch, 2).await;
    // Its answer was lost, and it asks again.
    assert_eq!(home.counts_down_in(&latch, alice, round).await, standing(2, 2));
    assert_eq!(home.latch(&latch).await, standing(2, 2));
    let now = home.store.latch_read(&latch).await.unwrap().unwrap().round;
    assert_ne!(now, round);
    assert_eq!(home.counts_down_in(&latch, alice, now).await, standing(2, 1));
}

async fn each_token_is_counted_once(home: &Home) {
    let (latch, alice, bob) = (fresh("latch"), Token::random(), Token::random());
    assert_eq!(home.counts_down(&latch, alice).await, None);
    assert_eq!(home.latch(&latch).await, None, "counting made a latch");
    home.sets(&latch, 2).await;
    for _ in 0..3 {
        assert_eq!(home.counts_down(&latch, alice).await, standing(2, 1));
    }
    for _ in 0..3 {
        assert_eq!(home.counts_down(&latch, bob).await, standing(2, 0));
    }
    // It stays open, whoever comes.
    assert_eq!(home.counts_down(&latch, Token::random()).await, standing(2, 0));
    assert_eq!(home.latch(&latch).await, standing(2, 0));
}

async fn all_hear_once_that_a_latch_opens(home: &Home) {
    let (latch, mut ear, mut other) = (fresh("latch"), home.ear().await, home.ear().await);
    let (alice, bob) = (Token::random(), Token::random());
    home.sets(&latch, 2).await;
    home.counts_down(&latch, alice).await;
    home.let_pass(A_WHILE).await;
    assert!(!ear.has_heard_opened(&latch), "one is missing");
    home.counts_down(&latch, bob).await;
    ear.hears_opened(&latch).await;
    other.hears_opened(&latch).await;
    for token in [alice, bob, Token::random()] {
        home.counts_down(&latch, token).await;
    }
    home.let_pass(A_WHILE).await;
    assert!(!ear.has_heard_opened(&latch), "told twice");
}

async fn of_many_at_once_each_is_counted(home: &Home) {
    let latch = fresh("latch");
    home.sets(&latch, 50).await;
    let round = home.store.latch_read(&latch).await.unwrap().unwrap().round;
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (store, latch) = (home.store.clone(), latch.clone());
        tries.spawn(async move {
            store.latch_count_down(&latch, &Token::random(), &round).await.unwrap().unwrap().remaining
        });
    }
    let mut remaining = tries.join_all().await;
    remaining.sort_unstable();
    assert_eq!(remaining, (0..50).collect::<Vec<_>>());
}

/// [`Store::latch_read`](crate::store::Store::latch_read)
pub async fn latch_read(home: &Home) {
    let names = nasty_names(&fresh("latch"));
    for (count, latch) in (1..).zip(&names) {
        assert_eq!(home.latch(latch).await, None);
        home.sets(latch, count).await;
        home.counts_down(latch, Token::random()).await;
    }
    for (count, latch) in (1..).zip(&names) {
        for _ in 0..2 {
            assert_eq!(home.latch(latch).await, standing(count, count - 1), "{latch:?}");
        }
    }
}
