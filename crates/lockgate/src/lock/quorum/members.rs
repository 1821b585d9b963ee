//! The servers of a quorum.
//!
//! Each is asked in a task of its own, so that one that is silent keeps nobody waiting, and so that what was asked is
//! finished even if nobody waits for the outcome any more.

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::super::metrics::Metrics;
use super::guard::Held;
use super::vote;
use crate::clock::Clock;
use crate::config::Config;
use crate::error::{OpenError, StoreError};
use crate::key::Name;
use crate::lock::LockError;
use crate::store::memory::MemoryStore;
use crate::store::{Attempt, Fence, Lease, MutexStatus, Renew, Renewal, Store, Token};

/// How often a server that was away at the start is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// How often a release is tried again that got no answer.
const RELEASE_ATTEMPTS: u32 = 5;

/// What one server of a quorum says of a mutex.
pub type MemberStatus = Result<MutexStatus, StoreError>;

/// See the [module](self).
pub(super) struct Members {
    all: Vec<Arc<Member>>,
    pub(super) clock: Clock,
    pub(super) metrics: Metrics,
    /// In which they are asked: that of the first question.
    runtime: OnceLock<Handle>,
}

/// One server.
struct Member {
    /// Where it is, as it may be shown.
    shown: String,
    /// Nothing until it has been reached for the first time.
    store: OnceLock<Arc<dyn Store>>,
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|member| &member.shown)).finish()
    }
}

/// How a question to all of them ended, or is certain to end.
pub(super) struct Votes {
    /// Which of them gave the lock, with which fence.
    pub(super) granted: Vec<(usize, Fence)>,
    /// How many of them did not answer.
    pub(super) failed: usize,
}

impl Members {
    pub(super) fn on(stores: Vec<Arc<dyn Store>>, config: &Config) -> Result<Arc<Self>, OpenError> {
        check_number(stores.len())?;
        let mut places = HashSet::new();
        if !stores.iter().all(|store| places.insert(Arc::as_ptr(store).cast::<()>())) {
            return Err(OpenError::Config(
                "a quorum has the same store twice; give each of them once".into(),
            ));
        }
        let members = stores.into_iter().enumerate().map(|(place, store)| {
            let member = Member { shown: format!("store {}", place + 1), store: OnceLock::new() };
            // It is new, so it is empty.
            let _ = member.store.set(store);
            Arc::new(member)
        });
        Ok(Arc::new(Self::of(members.collect(), config)))
    }

    fn of(all: Vec<Arc<Member>>, config: &Config) -> Self {
        Self { all, clock: config.clock.clone(), metrics: Metrics::new("quorum"), runtime: OnceLock::new() }
    }

    pub(super) async fn open(urls: Vec<String>, config: &Config) -> Result<Arc<Self>, OpenError> {
        check_number(urls.len())?;
        let mut seen = HashSet::new();
        if let Some(twice) = urls.iter().find(|url| !seen.insert(url.as_str())) {
            return Err(same_server(&crate::error::without_secrets(twice)));
        }
        let all = urls.iter().map(|url| {
            Arc::new(Member { shown: crate::error::without_secrets(url), store: OnceLock::new() })
        });
        let members = Arc::new(Self::of(all.collect(), config));
        let (tell, mut outcomes) = mpsc::channel(urls.len());
        for (place, url) in urls.iter().enumerate() {
            let (tell, url, config) = (tell.clone(), url.clone(), config.clone());
            tokio::spawn(async move {
                // If nobody listens, another one was the reason to give up.
                let _ = tell.send((place, connect(&url, &config).await)).await;
            });
        }
        drop(tell);
        let mut away = Vec::new();
        while let Some((place, outcome)) = outcomes.recv().await {
            match outcome {
                Ok(store) => members.join(place, store).await?,
                Err(OpenError::Unreachable(why)) => away.push((place, why)),
                Err(why) => return Err(why),
            }
        }
        if members.len() - away.len() < members.majority() {
            let reasons: Vec<_> = away.into_iter().map(|(_, why)| why).collect();
            return Err(OpenError::Unreachable(format!(
                "only {} of {} servers answer, and a quorum needs {}: {}",
                members.len() - reasons.len(),
                members.len(),
                members.majority(),
                reasons.join("; ")
            )));
        }
        for (place, why) in away {
            tracing::warn!(server = %members.all[place].shown, %why, "a server of the quorum is away; it joins when it is back");
            tokio::spawn(Self::join_later(
                Arc::downgrade(&members),
                place,
                urls[place].clone(),
                config.clone(),
            ));
        }
        Ok(members)
    }

    /// Takes a server in, unless it is one of the others.
    async fn join(&self, place: usize, store: Arc<dyn Store>) -> Result<(), OpenError> {
        let shown = &self.all[place].shown;
        let runs = |about: crate::store::About| about.run_ids;
        let its = store.about().await.map(runs).unwrap_or_default();
        for other in &self.all {
            let Some(other_store) = other.store.get() else { continue };
            let theirs = other_store.about().await.map(runs).unwrap_or_default();
            if its.iter().any(|run| theirs.contains(run)) {
                return Err(same_server(&format!("{shown} and {}", other.shown)));
            }
        }
        // Nobody else sets this one.
        let _ = self.all[place].store.set(store);
        Ok(())
    }

    async fn join_later(members: std::sync::Weak<Self>, place: usize, url: String, config: Config) {
        loop {
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
            if members.strong_count() == 0 {
                return;
            }
            let Ok(store) = connect(&url, &config).await else { continue };
            let Some(members) = members.upgrade() else { return };
            match members.join(place, store).await {
                Ok(()) => return,
                Err(why) => tracing::error!(%why, "a server does not join the quorum"),
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn majority(&self) -> usize {
        self.all.len() / 2 + 1
    }

    /// Asks all of them, each in a task of its own. The answers come as they come.
    fn ask<T: Send + 'static, F>(
        &self,
        question: impl Fn(Arc<dyn Store>) -> F,
    ) -> mpsc::UnboundedReceiver<(usize, Result<T, StoreError>)>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let (tell, answers) = mpsc::unbounded_channel();
        for (place, member) in self.all.iter().enumerate() {
            let tell = tell.clone();
            let Some(store) = member.store.get() else {
                let away = StoreError::Unavailable(format!("{} was never reached", member.shown));
                // The receiver is here.
                let _ = tell.send((place, Err(away)));
                continue;
            };
            let answer = question(Arc::clone(store));
            self.runtime.get_or_init(Handle::current).spawn(async move {
                // Who asked may have heard enough.
                let _ = tell.send((place, answer.await));
            });
        }
        answers
    }

    /// Asks all of them for the lock, and returns when the outcome is certain. A server that gives it after it was given
    /// back is told to take it back too.
    pub(super) async fn ask_for(&self, name: &Name, attempt: Attempt, held: &Held) -> Votes {
        // Whatever has to be given back is given back here, also by somebody who is outside of any runtime.
        self.runtime.get_or_init(Handle::current);
        let mut answers = self.ask(|store| {
            let (name, is_given_back) = (name.clone(), held.end());
            async move {
                let answer = store.mutex_acquire(&name, &attempt).await;
                if is_given_back.load(Ordering::Acquire) {
                    release_until_answered(&*store, &name, attempt.token).await?;
                }
                answer
            }
        });
        let mut votes = Votes { granted: Vec::new(), failed: 0 };
        let mut open = self.len();
        while open > 0
            && votes.granted.len() < self.majority()
            && votes.granted.len() + open >= self.majority()
            && let Some((place, answer)) = answers.recv().await
        {
            open -= 1;
            match answer.map(|answer| vote(&answer)) {
                Ok(Some(fence)) => votes.granted.push((place, fence)),
                Ok(None) => {}
                Err(_) => votes.failed += 1,
            }
        }
        votes
    }

    /// Writes the fence to all of them; whether a majority has it then.
    pub(super) async fn raise(&self, name: &Name, token: Token, fence: Fence) -> bool {
        let answers = self.ask(|store| {
            let name = name.clone();
            async move { store.mutex_raise(&name, &token, fence).await }
        });
        self.majority_of(answers, |is_raised| *is_raised).await
    }

    /// Renews it on all of them; whether a majority has.
    pub(super) async fn renew(&self, name: &Name, token: Token, lease: Lease) -> bool {
        let answers = self.ask(|store| {
            let renewal = Renewal { mutex: name.clone(), token, lease, fences: 0 };
            async move { store.mutex_renew(&[renewal]).await }
        });
        let is_renewed = |answers: &Vec<Renew>| matches!(answers[..], [Renew::Renewed { .. }]);
        self.majority_of(answers, is_renewed).await
    }

    /// Whether a majority says yes; as soon as it is certain.
    async fn majority_of<T>(
        &self,
        mut answers: mpsc::UnboundedReceiver<(usize, Result<T, StoreError>)>,
        is_yes: impl Fn(&T) -> bool,
    ) -> bool {
        let (mut yes, mut open) = (0, self.len());
        while yes < self.majority() && yes + open >= self.majority() {
            let Some((_, answer)) = answers.recv().await else { break };
            open -= 1;
            yes += usize::from(answer.is_ok_and(|answer| is_yes(&answer)));
        }
        yes >= self.majority()
    }

    /// Takes it back on all of them, in the background. Answers how many did, when a majority has, or cannot.
    pub(super) fn give_back(
        self: &Arc<Self>,
        name: &Name,
        token: Token,
    ) -> impl Future<Output = bool> + Send + 'static {
        let answers = self.ask(|store| {
            let name = name.clone();
            async move { release_until_answered(&*store, &name, token).await }
        });
        let members = Arc::clone(self);
        async move { members.majority_of(answers, |()| true).await }
    }

    pub(super) async fn status(&self, name: &Name) -> Vec<MemberStatus> {
        let mut answers = self.ask(|store| {
            let name = name.clone();
            async move { store.mutex_read(&name).await }
        });
        let mut all = Vec::with_capacity(self.len());
        while let Some(answer) = answers.recv().await {
            all.push(answer);
        }
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, answer)| answer).collect()
    }

    pub(super) async fn break_all(&self, name: &Name) -> Result<Fence, LockError> {
        let mut answers = self.ask(|store| {
            let name = name.clone();
            async move { store.mutex_break(&name).await }
        });
        let mut fences = Vec::with_capacity(self.len());
        while let Some((_, answer)) = answers.recv().await {
            fences.extend(answer.ok());
        }
        match fences.iter().max() {
            Some(fence) if fences.len() >= self.majority() => Ok(*fence),
            _ => Err(LockError::NoQuorum { name: name.clone(), answered: fences.len() }),
        }
    }
}

async fn release_until_answered(store: &dyn Store, name: &Name, token: Token) -> Result<(), StoreError> {
    let mut outcome = store.mutex_release(name, &token).await;
    for attempt in 1..RELEASE_ATTEMPTS {
        if outcome.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100) * attempt).await;
        outcome = store.mutex_release(name, &token).await;
    }
    outcome.map(drop)
}

fn check_number(servers: usize) -> Result<(), OpenError> {
    if servers >= 3 && servers % 2 == 1 {
        return Ok(());
    }
    Err(OpenError::Config(format!(
        "a quorum of {servers} servers: give 3, 5 or another odd number; an even number fails as easily as one less"
    )))
}

fn same_server(which: &str) -> OpenError {
    OpenError::Config(format!(
        "{which}: a quorum has the same server twice; give each server once, or it has two votes"
    ))
}

#[cfg(feature = "redis")]
async fn connect(url: &str, config: &Config) -> Result<Arc<dyn Store>, OpenError> {
    if url == "memory" {
        return Ok(Arc::new(MemoryStore::with(config)));
    }
    Ok(Arc::new(crate::store::redis::RedisStore::connect(url, config).await?))
}

#[cfg(not(feature = "redis"))]
async fn connect(url: &str, config: &Config) -> Result<Arc<dyn Store>, OpenError> {
    if url == "memory" {
        return Ok(Arc::new(MemoryStore::with(config)));
    }
    Err(OpenError::Config(
        "a quorum of servers needs the feature `redis`, which this program was built without".into(),
    ))
}
