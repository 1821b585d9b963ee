//! Somebody who hears what a store tells without being asked, and remembers it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "assertions: a store that does not answer fails the suite"
)]

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Home;
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{EarId, Fences, Hearing, Listener, Lock, News, Pool, Token};

/// How long to wait for news that should come.
const SOON: Duration = Duration::from_secs(5);

impl Home {
    /// Somebody who hears from now on.
    pub(super) async fn ear(&self) -> Ear {
        let (sender, news) = mpsc::unbounded_channel();
        let id = EarId::random();
        let hearing = self.store.listen(id, Arc::new(Recording(sender)));
        timeout(SOON, hearing.listening()).await.unwrap();
        let mut ear = Ear { id, news, _hearing: hearing };
        // What concerns everybody may come before it.
        while ear.next().await != News::Listening {}
        ear
    }
}

struct Recording(mpsc::UnboundedSender<News>);

impl Listener for Recording {
    fn hear(&self, news: News) {
        let _ = self.0.send(news);
    }
}

/// Somebody who hears.
pub(super) struct Ear {
    id: EarId,
    news: mpsc::UnboundedReceiver<News>,
    _hearing: Hearing,
}

impl Ear {
    pub(super) fn token(&self) -> Token {
        Token::for_ear(self.id)
    }

    async fn next(&mut self) -> News {
        timeout(SOON, self.news.recv()).await.expect("news that should have come").unwrap()
    }

    /// Expects that `token` was given what it waited for.
    pub(super) async fn hears_grant_to(&mut self, expected: Token) -> (Fences, Duration) {
        loop {
            match self.next().await {
                News::Granted { token, fences, lease, .. } if token == expected => return (fences, lease),
                News::Freed(_) | News::Opened(_) => {}
                other => panic!("not given to {expected:?}: {other:?}"),
            }
        }
    }

    /// Expects that `token` was given permits of `pool`, not before that time.
    pub(super) async fn hears_grant_of(
        &mut self,
        pool: &Pool,
        expected: Token,
        since: Timestamp,
    ) -> (Fences, Duration) {
        loop {
            match self.next().await {
                News::Granted { lock, token, fences, lease, granted_at } if token == expected => {
                    assert_eq!(lock, Lock::Pool(pool.clone()));
                    assert!(granted_at >= since, "{granted_at:?}");
                    return (fences, lease);
                }
                News::Freed(_) | News::Opened(_) => {}
                other => panic!("not given to {expected:?}: {other:?}"),
            }
        }
    }

    /// Expects that `token` is told that it waits no longer.
    pub(super) async fn hears_that_it_should_ask(&mut self, token: Token) {
        loop {
            match self.next().await {
                News::Freed(_) | News::Opened(_) => {}
                other => return assert_eq!(other, News::Ask(token)),
            }
        }
    }

    /// All who listen hear of all latches, also those of other tests.
    pub(super) async fn hears_opened(&mut self, expected: &Name) {
        while self.next().await != News::Opened(expected.clone()) {}
    }

    pub(super) fn has_heard_opened(&mut self, latch: &Name) -> bool {
        std::iter::from_fn(|| self.news.try_recv().ok()).any(|news| news == News::Opened(latch.clone()))
    }

    /// All who listen hear of all mutexes that somebody watched, also those of other tests.
    pub(super) async fn hears_freed(&mut self, expected: &Name) {
        while self.next().await != News::Freed(expected.clone()) {}
    }

    pub(super) fn has_heard_freed(&mut self, mutex: &Name) -> bool {
        std::iter::from_fn(|| self.news.try_recv().ok()).any(|news| news == News::Freed(mutex.clone()))
    }

    pub(super) fn has_heard_nothing(&mut self) -> bool {
        !std::iter::from_fn(|| self.news.try_recv().ok())
            .any(|news| !matches!(news, News::Freed(_) | News::Opened(_)))
    }
}
