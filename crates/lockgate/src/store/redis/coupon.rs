//! The coupon operation, on Redis.

use super::RedisStore;
use super::batch::{Campaigns, Line, pack, pack_passes};
use super::script::{Script, ScriptCall, not_understood};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::store::{HoldId, Issue, IssueWish, PassDenial, Sending, check_batch};

pub(super) async fn coupon_issue(
    store: &RedisStore,
    sending: &Sending,
    wishes: &[IssueWish],
) -> Result<Vec<Issue>, StoreError> {
    check_batch(wishes)?;
    wishes.iter().try_for_each(IssueWish::check)?;
    let Some((call, campaigns, groups)) = prepare(store, sending, wishes)? else { return Ok(Vec::new()) };
    read_groups(&store.send_batch(call, &campaigns).await?, &groups, wishes.len())
}

/// The bytes of a call, for who wants to send them without this library.
#[cfg(any(test, feature = "testing"))]
pub(super) fn packed(
    store: &RedisStore,
    sending: &Sending,
    wishes: &[IssueWish],
) -> Result<Vec<u8>, StoreError> {
    Ok(prepare(store, sending, wishes)?.map_or_else(Vec::new, |(call, ..)| call.packed(store.link.run())))
}

/// A call, its coupons, and which wishes belong to which of them.
type Prepared<'a, 'w> = (ScriptCall<'a>, Campaigns<'w>, Vec<Vec<usize>>);

/// The call for these wishes; `None` when there are none.
fn prepare<'a, 'w>(
    store: &'a RedisStore,
    sending: &Sending,
    wishes: &'w [IssueWish],
) -> Result<Option<Prepared<'a, 'w>>, StoreError> {
    let Some(first) = wishes.first() else { return Ok(None) };
    let mut campaigns = Campaigns::with(store, &first.coupon);
    let mut groups: Vec<Vec<usize>> = vec![Vec::with_capacity(wishes.len())];
    for (wish, IssueWish { coupon, .. }) in wishes.iter().enumerate() {
        let place = campaigns.place_of(store, coupon)?;
        groups.resize_with(campaigns.len(), Vec::new);
        groups[place].push(wish);
    }
    let in_order = groups.iter().flatten().map(|wish| (&wishes[*wish].user, wishes[*wish].pass.as_ref()));
    let passes = pack_passes(in_order);
    let mut call = store.batch_with_passes(Script::CouponIssue, sending, &passes, &campaigns, []);
    let (mut packed, mut field) = (String::new(), String::from("u"));
    for group in &groups {
        packed.clear();
        group.iter().for_each(|wish| pack(&mut packed, wishes[*wish].user.as_str()));
        call = call.arg(group.len()).arg(&packed);
        for wish in group {
            field.truncate(1);
            field.push_str(wishes[*wish].user.as_str());
            call = call.arg(&field);
        }
    }
    Ok(Some((call, campaigns, groups)))
}

/// The answers of all groups, back in the order of the wishes.
fn read_groups(text: &str, groups: &[Vec<usize>], wishes: usize) -> Result<Vec<Issue>, StoreError> {
    let mut answers = vec![Issue::Unknown; wishes];
    let mut lines = text.split('\n');
    for group in groups {
        let first = lines.next().ok_or_else(|| not_understood(&text))?;
        if let Some(for_all) = first.strip_prefix("* ") {
            let answer = read_issue(&Line::new(for_all))?;
            for (wish, later) in group.iter().zip(0..) {
                answers[*wish] = after(answer, later);
            }
            continue;
        }
        for (wish, line) in
            group.iter().zip(std::iter::once(Some(first)).chain(std::iter::repeat_with(|| lines.next())))
        {
            answers[*wish] = read_issue(&Line::new(line.ok_or_else(|| not_understood(&text))?))?;
        }
    }
    if lines.next().is_some() { Err(not_understood(&text)) } else { Ok(answers) }
}

/// The answer so many places after the first of a group to which all were issued.
fn after(first: Issue, later: u64) -> Issue {
    match first {
        Issue::Issued { seq, remaining } => {
            Issue::Issued { seq: seq + later, remaining: remaining.saturating_sub(later) }
        }
        denied => denied,
    }
}

fn read_issue(line: &Line<'_>) -> Result<Issue, StoreError> {
    match line.parts() {
        ("issued", _) => line.numbers().map(|[seq, remaining]| Issue::Issued { seq, remaining }),
        ("already", _) => line.numbers().map(|[seq]| Issue::AlreadyIssued { seq }),
        ("held", id) => {
            HoldId::parse(id).map(|hold| Issue::Held { hold }).ok_or_else(|| line.not_understood())
        }
        ("sold-out", "") => Ok(Issue::SoldOut),
        ("not-open", _) => {
            line.numbers().map(|[opens_at]| Issue::NotOpen { opens_at: Timestamp::from_micros(opens_at) })
        }
        ("paused", "") => Ok(Issue::Paused),
        ("closed", "") => Ok(Issue::Closed),
        ("unknown", "") => Ok(Issue::Unknown),
        ("recovering", "") => Ok(Issue::Recovering),
        (word, "") => PassDenial::from_word(word).map(Issue::from).ok_or_else(|| line.not_understood()),
        _ => Err(line.not_understood()),
    }
}
