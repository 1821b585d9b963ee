//! A lock for somebody who is not in this process: a client of the server.
//!
//! **Promise:** whoever it is lent to holds it as others hold theirs, with a fence, and waits in the same queue. Nobody here keeps
//! it: it ends with its lease unless whoever has its token renews it, and any process may renew or release it.

use std::time::Duration;

use super::error::{LockError, LockLost};
use super::guard::MutexGuard;
use super::mutex::Mutex;
use crate::error::StoreError;
use crate::store::{Fence, Lease, LoanMark, Release, Renew, Renewal, Token};

/// A lock that was lent out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loan {
    /// Whoever knows it can renew and release the lock.
    pub token: Token,
    /// Above that of every grant before.
    pub fence: Fence,
    /// For how long, from before the store was asked last.
    pub lease: Duration,
}

impl Mutex {
    /// Takes the lock for somebody elsewhere, and waits for it as [`lock`](Self::lock) does. Its token carries `mark`
    /// ([`Token::mark`]): who lends a lock out can see by [`status`](Self::status) for whom it was.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock).
    ///
    /// # Cancel safety
    ///
    /// When it is dropped, a lock that it may have got is given back, or ends with its lease.
    pub async fn lend(&self, mark: LoanMark) -> Result<Loan, LockError> {
        let mut alone = self.clone().cohort(None);
        alone.wish.mark = Some(mark);
        alone.wish.owner = None;
        let lease = alone.wish.terms.lease;
        alone.lock().await?.hand_out(lease).await
    }

    /// Lets the lease of a lock that was lent out begin anew; whether it was still held.
    ///
    /// # Errors
    ///
    /// When the lease is shorter than 1 ms or longer than 24 h, or when the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; renewing again finds out.
    pub async fn renew_loan(&self, token: Token, lease: Duration) -> Result<bool, StoreError> {
        let renewal = Renewal { mutex: self.name().clone(), token, lease: Lease::new(lease)?, fences: 0 };
        let answers = self.wish.desk.store.mutex_renew(&[renewal]).await?;
        Ok(matches!(answers.first(), Some(Renew::Renewed { .. })))
    }

    /// Gives back a lock that was lent out; whether it was still held, or is known to have been given back before.
    ///
    /// # Errors
    ///
    /// When the store does not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; releasing again finds out.
    pub async fn release_loan(&self, token: Token) -> Result<bool, StoreError> {
        let released = self.wish.desk.store.mutex_release(self.name(), &token).await?;
        Ok(matches!(released, Release::Released))
    }
}

impl MutexGuard {
    /// From now on nobody here cares for it.
    async fn hand_out(self, lease: Lease) -> Result<Loan, LockError> {
        let (name, fence) = (self.name().clone(), self.fence());
        let lost = || LockError::Lost(LockLost { name: name.clone() });
        let Some(tenure) = self.let_go() else { return Err(lost()) };
        // What was handed over by another holder is lent for the claim lease only, until it is asked for again.
        let loan = Loan { token: tenure.token, fence, lease: lease.length() };
        let mutex = tenure.lock.name().clone();
        let renewal = Renewal { mutex, token: tenure.token, lease, fences: 0 };
        if tenure.is_claim() {
            match tenure.desk.store.mutex_renew(&[renewal]).await?.first() {
                Some(Renew::Renewed { .. }) => {}
                _ => return Err(lost()),
            }
        }
        Ok(loan)
    }
}
