//! The words of the operations on pools of permits: what semaphores and read-write locks are made of.
//!
//! A pool has so many permits. Whoever takes some of them holds them for a lease, as one holds a mutex. A read-write lock is
//! a pool with more permits than there are readers: a reader takes one, a writer takes all. So a run of readers enters
//! together, a writer waits until they have gone, and whoever comes after it waits behind it.

use std::time::Duration;

use super::mutex::check_batch_of;
use super::{Attempt, Fence, IfTaken, Lease, Token};
use crate::error::InvalidInput;
use crate::key::Name;

/// How many permits a read-write lock has, and so how many a writer takes.
pub const WRITER: u32 = 1 << 30;

/// How many permits a semaphore may have.
pub const MAX_PERMITS: u32 = 1_000_000;

/// How many tokens that gave their permits back are remembered, so that a late copy of an old call does nothing.
pub const POOL_RELEASES_KEPT: usize = 8;

/// What a pool is used as; each has names of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolKind {
    /// A read-write lock: [`WRITER`] permits.
    RwLock,
    /// A semaphore: as many permits as its users say.
    Semaphore,
}

/// One pool of permits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool {
    /// What it is used as.
    pub kind: PoolKind,
    /// Its name.
    pub name: Name,
}

/// How many permits of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// How many are wanted: at least one.
    pub permits: u32,
    /// How many there are. Counts when the pool is not in use and its number was never [set](super::Store::permit_resize);
    /// otherwise the pool's own number does.
    pub of: u32,
}

impl Share {
    /// Refuses what no pool can give.
    pub(crate) fn check(self) -> Result<(), InvalidInput> {
        check_permits(self.permits)?;
        if self.permits > MAX_PERMITS && self.permits != WRITER {
            let problem = format!(
                "{} can never be had, a semaphore has at most {MAX_PERMITS}; ask for fewer",
                self.permits
            );
            return Err(InvalidInput::new("permits", problem));
        }
        if self.of == 0 || (self.of > MAX_PERMITS && self.of != WRITER) {
            let problem = format!("a semaphore has 1 to {MAX_PERMITS} permits, not {}", self.of);
            return Err(InvalidInput::new("permits", problem));
        }
        Ok(())
    }
}

/// Refuses an attempt that no store can make.
pub(crate) fn check_wish(pool: &Pool, attempt: &Attempt, share: Share) -> Result<(), InvalidInput> {
    attempt.check()?;
    share.check()?;
    if attempt.if_taken == IfTaken::Watch {
        return Err(InvalidInput::new("if_taken", "permits cannot be watched; wait in the queue"));
    }
    let problem = match pool.kind {
        PoolKind::RwLock if share.of != WRITER => {
            format!("a read-write lock has {WRITER} permits, not {}", share.of)
        }
        PoolKind::Semaphore if share.of > MAX_PERMITS => {
            format!("a semaphore has 1 to {MAX_PERMITS} permits, not {}", share.of)
        }
        _ => return Ok(()),
    };
    Err(InvalidInput::new("permits", problem))
}

/// Refuses to hold nothing.
pub(crate) fn check_permits(permits: u32) -> Result<(), InvalidInput> {
    if permits > 0 {
        return Ok(());
    }
    Err(InvalidInput::new("permits", "0 of them is nothing; name at least one, or release them"))
}

/// Refuses a number that the pool cannot have.
pub(crate) fn check_size(pool: &Pool, total: Option<u32>) -> Result<(), InvalidInput> {
    if pool.kind == PoolKind::RwLock {
        return Err(InvalidInput::new("pool", "a read-write lock cannot be resized; only a semaphore can"));
    }
    if total.is_none_or(|total| (1..=MAX_PERMITS).contains(&total)) {
        return Ok(());
    }
    let problem = format!(
        "a semaphore has 1 to {MAX_PERMITS} permits; to let nobody in any more, take all of one and hold them"
    );
    Err(InvalidInput::new("permits", problem))
}

/// Refuses a batch that no store can renew.
pub(crate) fn check_renewals(renewals: &[PermitRenewal]) -> Result<(), InvalidInput> {
    check_batch_of(renewals.iter().map(|renewal| renewal.fences))
}

/// One holder's permits to be renewed by [`Store::permit_renew`](super::Store::permit_renew).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PermitRenewal {
    /// Which pool.
    pub pool: Pool,
    /// Who holds some of it.
    pub token: Token,
    /// How long the lease is that begins now.
    pub lease: Lease,
    /// How many more fences to reserve: 0 to [`FENCE_BLOCK`](super::FENCE_BLOCK).
    pub fences: u64,
}

/// The answer to [`Store::permit_shrink`](super::Store::permit_shrink).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shrink {
    /// The token holds that many permits now, or held no more before.
    Shrunk,
    /// The token holds none.
    NotHeld,
}

/// How a pool stands: the answer to [`Store::permit_read`](super::Store::permit_read).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    /// How many permits there are; `None` when the pool is not in use and its number was never set.
    pub total: Option<u32>,
    /// How many of them are taken.
    pub taken: u64,
    /// How many hold some.
    pub holding: u64,
    /// Those whose leases end first, in that order: at most [`PoolStatus::MAX_LISTED`].
    pub holders: Vec<PermitHolder>,
    /// The highest fence that is known to be given out, or [`Fence::NONE`].
    pub fence: Fence,
    /// How many wait in the queue.
    pub waiting: u64,
    /// The first of them, in their order, and what they want: at most [`PoolStatus::MAX_LISTED`].
    pub first_waiting: Vec<(Token, u32)>,
}

impl PoolStatus {
    /// How many holders and how many waiters are listed at the most.
    pub const MAX_LISTED: usize = 100;
}

/// Who holds permits, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermitHolder {
    /// The holder's token.
    pub token: Token,
    /// How many it holds.
    pub permits: u32,
    /// What is left of its lease, by the store's clock.
    pub lease_left: Duration,
}
