//! The coupon operation, in memory.

use super::stock::Stock;
use crate::store::{Issue, IssueWish, JournalChange};

pub(super) fn coupon_issue(stock: &mut Stock<'_>, wishes: &[IssueWish]) -> Vec<Issue> {
    let mut answers = Vec::with_capacity(wishes.len());
    for wishes in wishes.chunk_by(|one, next| one.coupon == next.coupon) {
        let Stock { shelves, journal, now, .. } = stock;
        let Some(shelf) = shelves.at(&wishes[0].coupon, journal, *now) else {
            answers.extend(wishes.iter().map(|_| Issue::Unknown));
            continue;
        };
        let (state, seq, mut users, mut passes) =
            (shelf.state(*now), shelf.counts.seq + 1, Vec::new(), Vec::new());
        for wish in wishes {
            let (answer, used) = shelf.issue(state, *now, wish);
            if matches!(answer, Issue::Issued { .. }) {
                users.push(wish.user.clone());
                passes.extend(used);
            }
            answers.push(answer);
        }
        if !users.is_empty() {
            shelf.record_issued(journal, *now, JournalChange::Issued { seq, users, passes });
        }
    }
    answers
}
