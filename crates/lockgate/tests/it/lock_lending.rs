//! Locks that are lent to somebody who is not in the process, on both stores.

use std::time::Duration;

use lockgate::lock::{LockError, Mutex};
use lockgate::store::{LoanMark, Token};
use lockgate::testing::eventually_async;
use tokio::time::{sleep, timeout};

use super::lock::{Place, embedded, on_both_stores, on_redis};

const SOON: Duration = Duration::from_secs(10);
const MARK: LoanMark = LoanMark::new(0xff_feed_cafe);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn mutex(place: &Place, gate: usize, lease: Duration) -> Mutex {
    place.gates[gate].mutex("m").unwrap().lease(lease).unwrap()
}

on_both_stores! {
    async fn what_is_lent_out_is_held_and_anybody_with_the_token_gives_it_back(place: 2) {
        let (here, there) = (mutex(&place, 0, SOON), mutex(&place, 1, SOON));
        let loan = here.lend(MARK).await.unwrap();
        assert_eq!((loan.token.mark(), loan.lease), (MARK, SOON));
        let holder = there.status().await.unwrap().holder.unwrap();
        assert_eq!(holder.token, loan.token);
        assert!(here.try_lock().await.unwrap().is_none() && there.try_lock().await.unwrap().is_none());

        assert!(!there.release_loan(Token::random()).await.unwrap());
        assert!(there.release_loan(loan.token).await.unwrap());
        let next = there.lock().await.unwrap();
        assert!(next.fence() > loan.fence);
        // Not by whoever had it before.
        assert!(!here.renew_loan(loan.token, SOON).await.unwrap());
        next.release().await.unwrap();
        place.leaves_nothing_behind().await;
    }

    async fn nobody_here_keeps_what_is_lent_out(place: 1) {
        let lender = mutex(&place, 0, ms(400));
        let loan = lender.lend(MARK).await.unwrap();
        sleep(ms(250)).await;
        assert!(lender.renew_loan(loan.token, ms(600)).await.unwrap());
        sleep(ms(300)).await;
        assert!(lender.try_lock().await.unwrap().is_none(), "it was renewed");
        let ends = eventually_async(SOON, async || lender.status().await.unwrap().holder.is_none()).await;
        assert!(ends && !lender.renew_loan(loan.token, SOON).await.unwrap());
        place.leaves_nothing_behind().await;
    }

    async fn those_who_want_to_be_lent_it_wait_in_their_order(place: 2) {
        let holder = mutex(&place, 0, SOON).lock().await.unwrap();
        let mut waiting = Vec::new();
        for mark in 1..=6_u64 {
            let lender = mutex(&place, usize::try_from(mark).unwrap() % 2, SOON);
            waiting.push(tokio::spawn(async move { (lender.lend(LoanMark::new(mark)).await.unwrap(), lender) }));
            let queued = async || {
                place.gates[0].mutex("m").unwrap().status().await.unwrap().waiting == mark
            };
            assert!(eventually_async(SOON, queued).await);
        }
        let mut last = holder.fence();
        holder.release().await.unwrap();
        for (mark, waiter) in (1..).zip(waiting) {
            let (loan, lender) = timeout(SOON, waiter).await.unwrap().unwrap();
            assert_eq!(loan.token.mark(), LoanMark::new(mark));
            assert!(loan.fence > last);
            last = loan.fence;
            // It was handed over, and still is lent for the whole lease.
            let left = lender.status().await.unwrap().holder.unwrap().lease_left;
            assert!(left > SOON / 2, "{left:?}");
            assert!(lender.release_loan(loan.token).await.unwrap());
        }
        place.leaves_nothing_behind().await;
    }

    async fn who_waits_too_long_goes_without(place: 1) {
        let held = mutex(&place, 0, SOON).lend(MARK).await.unwrap();
        for wait in [Duration::ZERO, ms(100)] {
            let late = mutex(&place, 0, SOON).wait(wait).lend(MARK).await;
            assert!(matches!(late, Err(LockError::TimedOut { .. })), "{late:?}");
        }
        assert!(mutex(&place, 0, SOON).release_loan(held.token).await.unwrap());
        place.leaves_nothing_behind().await;
    }
}
