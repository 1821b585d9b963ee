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
        self.store.latch_set(latch, count).await.unwrap()
    }

    async fn counts_down(&self, latch: &Name, token: Token) -> Option<LatchStatus> {
        self.store.latch_count_down(latch, &token).await.unwrap()
    }

    async fn latch(&self, latch: &Name) -> Option<LatchStatus> {
        self.store.latch_read(latch).await.unwrap()
    }
}

fn standing(count: u32, remaining: u32) -> Option<LatchStatus> {
    Some(LatchStatus { count, remaining })
}

/// [`Store::latch_set`](crate::store::Store::latch_set)
pub async fn latch_set(home: &Home) {
    let latch = fresh("latch");
    assert_eq!(home.sets(&latch, 2).await, LatchSet::Set);
    assert_eq!(home.latch(&latch).await, standing(2, 2));
    // One that counts down is left alone.
    let (alice, bob) = (Token::random(), Token::random());
    let counting = |count, remaining| LatchSet::Counting(LatchStatus { count, remaining });
    assert_eq!(home.sets(&latch, 5).await, counting(2, 2));
    home.counts_down(&latch, alice).await;
    assert_eq!(home.sets(&latch, 5).await, counting(2, 1));
    assert_eq!(home.latch(&latch).await, standing(2, 1));
    // One that is open can be set anew, and has forgotten who came.
    home.counts_down(&latch, bob).await;
    assert_eq!(home.sets(&latch, 3).await, LatchSet::Set);
    assert_eq!(home.latch(&latch).await, standing(3, 3));
    assert_eq!(home.counts_down(&latch, alice).await, standing(3, 2));

    for count in [0, MAX_LATCH + 1] {
        let latch = fresh("latch");
        let refused = home.store.latch_set(&latch, count).await;
        assert!(matches!(refused, Err(StoreError::InvalidInput(_))), "{count}: {refused:?}");
        assert_eq!(home.latch(&latch).await, None);
    }
    assert_eq!(home.sets(&fresh("latch"), MAX_LATCH).await, LatchSet::Set);
}

/// [`Store::latch_count_down`](crate::store::Store::latch_count_down)
pub async fn latch_count_down(home: &Home) {
    each_token_is_counted_once(home).await;
    all_hear_once_that_a_latch_opens(home).await;
    of_many_at_once_each_is_counted(home).await;
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
    let mut tries = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (store, latch) = (home.store.clone(), latch.clone());
        tries.spawn(async move {
            store.latch_count_down(&latch, &Token::random()).await.unwrap().unwrap().remaining
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
