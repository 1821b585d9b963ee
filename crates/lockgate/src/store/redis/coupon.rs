//! The coupon operations, on Redis.

use super::RedisStore;
use super::script::{Script, unsigned};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::{Kind, Name};
use crate::store::coupon::check_batch;
use crate::store::{CouponOpen, CouponStatus, CouponTerms, Issue};

pub(super) async fn coupon_open(
    store: &RedisStore,
    coupon: &Name,
    terms: &CouponTerms,
) -> Result<CouponOpen, StoreError> {
    let call = store
        .scripts
        .call(Script::CouponOpen, &[store.keys.key(Kind::Coupon, coupon)])
        .arg(terms.quantity)
        .arg(micros_or_zero(terms.opens_at))
        .arg(micros_or_zero(terms.closes_at));
    let reply = call.send(&store.link).await?;
    let status = |issued, now| CouponStatus::at(timestamp(now), terms, unsigned(issued));
    match reply.parts() {
        ("created", &[issued, now]) => Ok(CouponOpen::Created(status(issued, now))),
        ("changed", &[issued, now]) => Ok(CouponOpen::Changed(status(issued, now))),
        ("below-issued", &[issued]) => Ok(CouponOpen::BelowIssued { issued: unsigned(issued) }),
        _ => reply.unexpected(),
    }
}

pub(super) async fn coupon_issue(
    store: &RedisStore,
    coupon: &Name,
    users: &[Name],
) -> Result<Vec<Issue>, StoreError> {
    check_batch(users)?;
    if users.is_empty() {
        return Ok(Vec::new());
    }
    let keys = [store.keys.key(Kind::Coupon, coupon), store.keys.key(Kind::CouponUsers, coupon)];
    let mut call = store.scripts.call(Script::CouponIssue, &keys);
    for user in users {
        call = call.arg(user.as_str());
    }
    let reply = call.send(&store.link).await?;
    let (denied, remaining, seqs) = match reply.parts() {
        ("unknown", []) => return Ok(vec![Issue::Unknown; users.len()]),
        ("scheduled", [opens_at, remaining, seqs @ ..]) => {
            (Issue::NotOpen { opens_at: timestamp(*opens_at) }, *remaining, seqs)
        }
        ("open", [_, remaining, seqs @ ..]) => (Issue::SoldOut, *remaining, seqs),
        ("closed", [_, remaining, seqs @ ..]) => (Issue::Closed, *remaining, seqs),
        _ => return reply.unexpected(),
    };
    if seqs.len() != users.len() {
        return reply.unexpected();
    }
    let mut remaining = unsigned(remaining);
    Ok(seqs.iter().map(|seq| read_answer(*seq, denied, &mut remaining)).collect())
}

/// One user's number as the script returns it: see `coupon_issue.lua`.
fn read_answer(seq: i64, denied: Issue, remaining: &mut u64) -> Issue {
    match seq {
        0 => denied,
        ..0 => Issue::AlreadyIssued { seq: seq.unsigned_abs() },
        1.. => {
            *remaining = remaining.saturating_sub(1);
            Issue::Issued { seq: seq.unsigned_abs(), remaining: *remaining }
        }
    }
}

pub(super) async fn coupon_read(
    store: &RedisStore,
    coupon: &Name,
) -> Result<Option<CouponStatus>, StoreError> {
    let call = store.scripts.call(Script::CouponRead, &[store.keys.key(Kind::Coupon, coupon)]);
    let reply = call.send(&store.link).await?;
    match reply.parts() {
        ("unknown", []) => Ok(None),
        ("known", &[quantity, issued, opens_at, closes_at, now]) => {
            let terms = CouponTerms {
                quantity: unsigned(quantity),
                opens_at: timestamp_unless_zero(opens_at),
                closes_at: timestamp_unless_zero(closes_at),
            };
            Ok(Some(CouponStatus::at(timestamp(now), &terms, unsigned(issued))))
        }
        _ => reply.unexpected(),
    }
}

fn micros_or_zero(time: Option<Timestamp>) -> u64 {
    time.map_or(0, Timestamp::as_micros)
}

fn timestamp(micros: i64) -> Timestamp {
    Timestamp::from_micros(unsigned(micros))
}

fn timestamp_unless_zero(micros: i64) -> Option<Timestamp> {
    (micros != 0).then(|| timestamp(micros))
}
