//! What a campaign that demands a pass must do: the same, whichever way something of it is taken.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use std::time::Duration;

use tokio::task::JoinSet;

use super::stock::{LONG_HOLD, MOMENT, hold, issue_wishes, limited, purchase, terms, unopened};
use super::{Home, fresh, name, nasty_names};
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, CampaignKind, CampaignOpen, HoldId, HoldPlace, HoldWish, Issue, IssueWish,
    JournalChange, JournalEntry, MAX_BATCH, MAX_STAY, PassUse, Purchase, PurchaseWish, Sending, Settlement,
    Store, Terms, Token, UsedPass,
};

/// The ways in which something is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Issue,
    Buy,
    HoldCoupon,
    HoldDeal,
}

/// What was said, whichever way it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Granted,
    Had,
    Required,
    Invalid,
    Expired,
    Used,
    Limit,
    SoldOut,
    NotOpen,
    Paused,
    Closed,
}

use Said::{Closed, Expired, Granted, Had, Invalid, Limit, NotOpen, Paused, Required, SoldOut, Used};

type Wish<'a> = (&'a str, Option<&'a PassUse>);

impl Way {
    const fn kind(self) -> CampaignKind {
        match self {
            Way::Issue | Way::HoldCoupon => CampaignKind::Coupon,
            Way::Buy | Way::HoldDeal => CampaignKind::Deal,
        }
    }

    /// Sends the wishes as one batch.
    async fn ask(self, store: &dyn Store, campaign: &Campaign, wishes: &[Wish<'_>]) -> Vec<Said> {
        let sending = Sending::once();
        match self {
            Way::Issue => {
                let wishes: Vec<_> = wishes.iter().map(|wish| issue(campaign, *wish)).collect();
                let answers = store.coupon_issue(&sending, &wishes).await.unwrap();
                answers.iter().map(|answer| said_of_issue(*answer)).collect()
            }
            Way::Buy => {
                let wish = |(user, pass): &Wish<'_>| PurchaseWish {
                    pass: pass.cloned(),
                    ..purchase(campaign, user, 1, None)
                };
                let wishes: Vec<_> = wishes.iter().map(wish).collect();
                let answers = store.deal_purchase(&sending, &wishes).await.unwrap();
                answers.iter().map(|answer| said_of_purchase(*answer)).collect()
            }
            Way::HoldCoupon | Way::HoldDeal => {
                let wish = |(user, pass): &Wish<'_>| HoldWish {
                    pass: pass.cloned(),
                    ..hold(campaign, HoldId::random(), user, 1, LONG_HOLD)
                };
                let wishes: Vec<_> = wishes.iter().map(wish).collect();
                let answers = store.hold_place(&sending, &wishes).await.unwrap();
                answers.iter().map(|answer| said_of_hold(*answer)).collect()
            }
        }
    }
}

fn issue(coupon: &Campaign, (user, pass): Wish<'_>) -> IssueWish {
    IssueWish { pass: pass.cloned(), ..issue_wishes(coupon, &[user]).remove(0) }
}

fn said_of_issue(answer: Issue) -> Said {
    match answer {
        Issue::Issued { .. } => Granted,
        Issue::AlreadyIssued { .. } | Issue::Held { .. } => Had,
        Issue::PassRequired => Required,
        Issue::PassInvalid => Invalid,
        Issue::PassExpired => Expired,
        Issue::PassUsed => Used,
        Issue::SoldOut => SoldOut,
        Issue::NotOpen { .. } => NotOpen,
        Issue::Paused => Paused,
        _ => Closed,
    }
}

fn said_of_purchase(answer: Purchase) -> Said {
    match answer {
        Purchase::Bought { .. } => Granted,
        Purchase::AlreadyBought { .. } => Had,
        Purchase::PassRequired => Required,
        Purchase::PassInvalid => Invalid,
        Purchase::PassExpired => Expired,
        Purchase::PassUsed => Used,
        Purchase::LimitExceeded { .. } => Limit,
        Purchase::SoldOut { .. } => SoldOut,
        Purchase::NotOpen { .. } => NotOpen,
        Purchase::Paused => Paused,
        _ => Closed,
    }
}

fn said_of_hold(answer: HoldPlace) -> Said {
    match answer {
        HoldPlace::Held { .. } => Granted,
        HoldPlace::AlreadyIssued { .. } => Had,
        HoldPlace::PassRequired => Required,
        HoldPlace::PassInvalid => Invalid,
        HoldPlace::PassExpired => Expired,
        HoldPlace::PassUsed => Used,
        HoldPlace::LimitExceeded { .. } => Limit,
        HoldPlace::SoldOut { .. } => SoldOut,
        HoldPlace::NotOpen { .. } => NotOpen,
        HoldPlace::Paused => Paused,
        _ => Closed,
    }
}

impl Home {
    /// A pass that does for an hour.
    fn pass(&self, line: &Name, user: &str) -> PassUse {
        let expires_at = Timestamp::from_millis((self.clock.wall() + Duration::from_secs(3_600)).as_millis());
        PassUse { line: line.clone(), user: name(user), jti: Token::random(), expires_at }
    }

    async fn asked(&self, way: Way, campaign: &Campaign, wishes: &[Wish<'_>]) -> Vec<Said> {
        way.ask(&*self.store, campaign, wishes).await
    }

    async fn asked_one(&self, way: Way, campaign: &Campaign, user: &str, pass: &PassUse) -> Said {
        self.asked(way, campaign, &[(user, Some(pass))]).await[0]
    }
}

/// What must hold for every way.
pub(super) async fn a_pass_is_demanded(home: &Home, way: Way) {
    only_who_was_admitted_gets_something(home, way).await;
    the_first_reason_to_deny_is_told(home, way).await;
    only_a_grant_uses_a_pass_up(home, way).await;
    one_admission_is_one_grant_in_a_batch(home, way).await;
    one_admission_is_one_grant_in_a_crowd(home, way).await;
    who_demands_no_pass_does_not_look_at_one(home, way).await;
    a_renewed_pass_is_the_same_admission(home, way).await;
    what_was_used_stays_used(home, way).await;
    lines_and_users_may_be_called_anything(home, way).await;
    the_journal_says_which_pass_was_used(home, way).await;
    many_passes_are_taken_at_once(home, way).await;
}

async fn demanding(home: &Home, way: Way, terms: Terms) -> (Campaign, Name) {
    let line = fresh("line");
    (home.opened(way.kind(), terms.demanding_pass_of(line.clone())).await, line)
}

async fn only_who_was_admitted_gets_something(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, terms(10)).await;
    let good = home.pass(&line, "alice");
    let elsewhere = PassUse { line: fresh("line"), ..good.clone() };
    let almost = PassUse { line: name(&format!("{line} ")), ..good.clone() };
    let theirs = PassUse { user: name("bob"), ..good.clone() };
    let over = PassUse { expires_at: Timestamp::from_millis(home.clock.wall().as_millis()), ..good.clone() };
    let nobody = PassUse { expires_at: Timestamp::from_micros(0), ..good.clone() };
    let wishes =
        [None, Some(&elsewhere), Some(&almost), Some(&theirs), Some(&over), Some(&nobody), Some(&good)];
    let wishes = wishes.map(|pass| ("alice", pass));
    let expected = [Required, Invalid, Invalid, Invalid, Expired, Expired, Granted];
    // Each alone, and then all in one batch.
    for (wish, expected) in wishes.iter().zip(expected).take(6) {
        assert_eq!(home.asked(way, &campaign, &[*wish]).await, [expected], "{way:?} {wish:?}");
    }
    assert_eq!(home.asked(way, &campaign, &wishes).await, expected, "{way:?}");
    let status = home.status(&campaign).await;
    assert_eq!((status.granted + status.held, status.rev), (1, 2));
    home.journal_is_whole(&campaign).await;
}

async fn the_first_reason_to_deny_is_told(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, limited(1, 1)).await;
    let demanded = |terms: Terms| terms.demanding_pass_of(line.clone());
    let (used, good, theirs) =
        (home.pass(&line, "alice"), home.pass(&line, "bob"), home.pass(&line, "carol"));
    assert_eq!(home.asked_one(way, &campaign, "alice", &used).await, Granted);
    let by_bob = PassUse { user: name("bob"), ..used.clone() };
    let wishes = [None, Some(&theirs), Some(&by_bob), Some(&good)].map(|pass| ("bob", pass));
    assert_eq!(home.asked(way, &campaign, &wishes).await, [Required, Invalid, Used, SoldOut], "{way:?}");

    // The limit comes after the pass and before the stock.
    let more = home.pass(&line, "alice");
    let again = [None, Some(&used), Some(&more)].map(|pass| ("alice", pass));
    let limited_by_pass = if way == Way::Issue { [Had, Had, Had] } else { [Required, Used, Limit] };
    assert_eq!(home.asked(way, &campaign, &again).await, limited_by_pass, "{way:?}");

    let later = home.in_a_moment() + Duration::from_secs(60);
    home.open(&campaign, demanded(limited(9, 1).between(Some(later), None).unwrap())).await;
    assert_eq!(home.asked(way, &campaign, &wishes).await, [NotOpen; 4], "{way:?}");
    home.open(&campaign, demanded(limited(9, 1))).await;
    home.change(&campaign, CampaignChange::Pause).await;
    assert_eq!(home.asked(way, &campaign, &wishes).await, [Paused; 4], "{way:?}");
    home.change(&campaign, CampaignChange::Close).await;
    assert_eq!(home.asked(way, &campaign, &wishes).await, [Closed; 4], "{way:?}");
    home.journal_is_whole(&campaign).await;
}

async fn only_a_grant_uses_a_pass_up(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, limited(0, 1)).await;
    let pass = home.pass(&line, "alice");
    for _ in 0..2 {
        assert_eq!(home.asked_one(way, &campaign, "alice", &pass).await, SoldOut, "{way:?}");
    }
    home.change(&campaign, CampaignChange::Pause).await;
    assert_eq!(home.asked_one(way, &campaign, "alice", &pass).await, Paused);
    home.change(&campaign, CampaignChange::Resume).await;
    home.change(&campaign, CampaignChange::Restock { by: 5 }).await;
    assert_eq!(home.asked_one(way, &campaign, "alice", &pass).await, Granted, "{way:?}: a denial used it up");

    if way.kind() == CampaignKind::Deal {
        let more = home.pass(&line, "alice");
        assert_eq!(home.asked_one(way, &campaign, "alice", &more).await, Limit);
        home.open(&campaign, limited(5, 2).demanding_pass_of(line)).await;
        assert_eq!(
            home.asked_one(way, &campaign, "alice", &more).await,
            Granted,
            "{way:?}: the limit used it up"
        );
    }
    home.journal_is_whole(&campaign).await;
}

async fn one_admission_is_one_grant_in_a_batch(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, terms(10)).await;
    let alices = home.pass(&line, "alice");
    let [bobs, carols] = ["bob", "carol"].map(|user| PassUse { user: name(user), ..alices.clone() });
    let wishes =
        [("bob", Some(&bobs)), ("alice", Some(&alices)), ("bob", Some(&bobs)), ("carol", Some(&carols))];
    // Who has a coupon is told so; who wants another of a deal needs another pass.
    let again = if way == Way::Issue { Had } else { Used };
    assert_eq!(home.asked(way, &campaign, &wishes).await, [Granted, Used, again, Used], "{way:?}");
    assert_eq!(home.asked(way, &campaign, &wishes).await, [again, Used, again, Used], "{way:?}");
    home.journal_is_whole(&campaign).await;
}

/// Each for itself, all at once.
async fn one_admission_is_one_grant_in_a_crowd(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, terms(100)).await;
    let pass = home.pass(&line, "somebody");
    let mut crowd = JoinSet::new();
    for user in 0..100 {
        let (store, campaign, user) = (home.store.clone(), campaign.clone(), format!("user-{user}"));
        let pass = PassUse { user: name(&user), ..pass.clone() };
        crowd.spawn(async move { way.ask(&*store, &campaign, &[(&user, Some(&pass))]).await[0] });
    }
    let said = crowd.join_all().await;
    let [granted, used] = [Granted, Used].map(|kind| said.iter().filter(|said| **said == kind).count());
    assert_eq!((granted, used), (1, 99), "{way:?}");
}

async fn who_demands_no_pass_does_not_look_at_one(home: &Home, way: Way) {
    let campaign = home.opened(way.kind(), terms(10)).await;
    let line = fresh("line");
    let pass = home.pass(&line, "alice");
    let over = PassUse { expires_at: Timestamp::from_micros(1), user: name("bob"), ..pass.clone() };
    let wishes = [("alice", Some(&pass)), ("carol", Some(&over)), ("dave", None)];
    assert_eq!(home.asked(way, &campaign, &wishes).await, [Granted; 3], "{way:?}");
    home.open(&campaign, terms(10).demanding_pass_of(line)).await;
    let unused = PassUse { user: name("erin"), ..pass };
    assert_eq!(home.asked_one(way, &campaign, "erin", &unused).await, Granted, "{way:?}: it was used up");
    let noted = home.journal_is_whole(&campaign).await;
    let passes: Vec<_> = noted.iter().flat_map(passes_in).collect();
    assert_eq!(passes, [used(&unused)], "{way:?}");
}

fn used(pass: &PassUse) -> UsedPass {
    UsedPass { jti: pass.jti, expires_at: pass.expires_at }
}

fn passes_in(change: &JournalChange) -> Vec<UsedPass> {
    match change {
        JournalChange::Issued { passes, .. } => passes.clone(),
        JournalChange::Bought { pass, .. } | JournalChange::Held { pass, .. } => {
            pass.iter().copied().collect()
        }
        _ => Vec::new(),
    }
}

/// Also after the end of the one that was used, and for as long as somebody can have a renewed one.
async fn a_renewed_pass_is_the_same_admission(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, terms(10)).await;
    let first = PassUse { expires_at: home.in_a_moment(), ..home.pass(&line, "alice") };
    assert_eq!(home.asked_one(way, &campaign, "alice", &first).await, Granted);
    let renewed = |expires_at| PassUse { user: name("bob"), expires_at, ..first.clone() };
    let an_hour = Duration::from_secs(3_600);
    assert_eq!(home.asked_one(way, &campaign, "bob", &renewed(first.expires_at + an_hour)).await, Used);
    home.wait_until(first.expires_at).await;
    home.let_pass(MOMENT).await;
    assert_eq!(
        home.asked_one(way, &campaign, "bob", &renewed(first.expires_at + an_hour)).await,
        Used,
        "{way:?}"
    );
    if !home.time_can_be_moved {
        return;
    }
    home.wait_until(first.expires_at + (MAX_STAY - Duration::from_secs(1))).await;
    let last = renewed(first.expires_at + MAX_STAY + an_hour);
    assert_eq!(home.asked_one(way, &campaign, "bob", &last).await, Used, "{way:?}");
    home.wait_until(first.expires_at + MAX_STAY).await;
    assert_eq!(home.asked_one(way, &campaign, "bob", &last).await, Granted, "{way:?}: it is kept for ever");
}

async fn what_was_used_stays_used(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, terms(10)).await;
    let (pass, id, other) = (home.pass(&line, "alice"), HoldId::random(), home.pass(&line, "bob"));
    let wish = HoldWish { pass: Some(pass.clone()), ..hold(&campaign, id, "alice", 1, LONG_HOLD) };
    let held = home.store.hold_place(&Sending::once(), std::slice::from_ref(&wish)).await.unwrap();
    home.settle(&campaign, id, "alice", Settlement::Cancel).await;
    // The same hold is answered again, with the used pass and without any.
    let without = HoldWish { pass: None, ..wish.clone() };
    assert_eq!(home.store.hold_place(&Sending::once(), &[wish, without]).await.unwrap(), [held[0], held[0]]);
    assert_eq!(
        home.asked_one(way, &campaign, "alice", &pass).await,
        Used,
        "{way:?}: cancelling gave it back"
    );

    assert_eq!(home.asked_one(way, &campaign, "bob", &other).await, Granted);
    if matches!(way, Way::Issue | Way::Buy) {
        home.revoke(&campaign, "bob", 1).await;
        assert_eq!(
            home.asked_one(way, &campaign, "bob", &other).await,
            Used,
            "{way:?}: revoking gave it back"
        );
    }
    // Other terms, and then the same again.
    home.open(&campaign, terms(10)).await;
    assert_eq!(home.asked_one(way, &campaign, "carol", &home.pass(&fresh("line"), "x")).await, Granted);
    home.open(&campaign, terms(11).demanding_pass_of(line.clone())).await;
    home.change(&campaign, CampaignChange::Restock { by: 1 }).await;
    let stolen = PassUse { user: name("dave"), ..pass };
    assert_eq!(home.asked_one(way, &campaign, "dave", &stolen).await, Used, "{way:?}");
    assert_eq!(home.asked(way, &campaign, &[("dave", None)]).await, [Required], "{way:?}");
    home.journal_is_whole(&campaign).await;
}

async fn lines_and_users_may_be_called_anything(home: &Home, way: Way) {
    let users = nasty_names(&name("u"));
    for line in nasty_names(&name("l")).into_iter().step_by(5).chain([name("5:"), name("y"), name("\n=7")]) {
        let demanding = terms(users.len() as u64).demanding_pass_of(line.clone());
        let campaign = home.opened(way.kind(), demanding).await;
        let passes: Vec<_> = users.iter().map(|user| home.pass(&line, user.as_str())).collect();
        let wishes: Vec<_> = passes.iter().map(|pass| (pass.user.as_str(), Some(pass))).collect();
        assert_eq!(home.asked(way, &campaign, &wishes).await, vec![Granted; users.len()], "{way:?} {line:?}");
        assert_eq!(home.status(&campaign).await.line, Some(line));
    }
}

async fn the_journal_says_which_pass_was_used(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, terms(10)).await;
    let [one, two, three] = ["a", "b", "c"].map(|user| home.pass(&line, user));
    let none = [("d", None)];
    home.asked(way, &campaign, &[("a", Some(&one)), none[0], ("b", Some(&two))]).await;
    home.asked(way, &campaign, &[("c", Some(&three))]).await;
    let changes = home.journal_is_whole(&campaign).await;
    let passes: Vec<_> = changes.iter().flat_map(passes_in).collect();
    assert_eq!(passes, [&one, &two, &three].map(used), "{way:?}");
}

async fn many_passes_are_taken_at_once(home: &Home, way: Way) {
    let (campaign, line) = demanding(home, way, terms(500)).await;
    let users: Vec<_> = (0..MAX_BATCH).map(|user| format!("user-{user}")).collect();
    let passes: Vec<_> = users.iter().map(|user| home.pass(&line, user)).collect();
    let wishes: Vec<_> = users.iter().zip(&passes).map(|(user, pass)| (user.as_str(), Some(pass))).collect();
    let said = home.asked(way, &campaign, &wishes).await;
    assert!(
        said[..500].iter().all(|said| *said == Granted) && said[500..].iter().all(|said| *said == SoldOut)
    );
    home.change(&campaign, CampaignChange::Restock { by: 500 }).await;
    let rest = home.asked(way, &campaign, &wishes[500..]).await;
    assert!(rest.iter().all(|said| *said == Granted), "{way:?}: being sold out used them up");
}

/// Each wish is judged by its own pass, whichever coupon it is for.
pub(super) async fn passes_go_with_their_wishes(home: &Home) {
    let [free, strict, stricter] = home.opened_together(CampaignKind::Coupon, [9, 9, 9]).await;
    let [line, other] = [fresh("line"), fresh("line")];
    home.open(&strict, terms(9).demanding_pass_of(line.clone())).await;
    home.open(&stricter, terms(9).demanding_pass_of(other.clone())).await;
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|user| home.pass(&line, user));
    let e = home.pass(&other, "e");
    let wishes = [
        (&strict, "a", Some(&a), Granted),
        (&free, "b", Some(&b), Granted),
        (&stricter, "c", Some(&c), Invalid),
        (&strict, "b", Some(&b), Granted),
        (&stricter, "e", Some(&e), Granted),
        (&strict, "c", None, Required),
        (&free, "c", None, Granted),
        (&strict, "d", Some(&d), Granted),
        (&stricter, "a", Some(&a), Invalid),
        (&strict, "e", Some(&e), Invalid),
    ];
    let sent: Vec<_> = wishes.iter().map(|(coupon, user, pass, _)| issue(coupon, (*user, *pass))).collect();
    let answers = home.store.coupon_issue(&Sending::once(), &sent).await.unwrap();
    let said: Vec<_> = answers.into_iter().map(said_of_issue).collect();
    assert_eq!(said, wishes.map(|(_, _, _, expected)| expected));
    for coupon in [free, strict, stricter] {
        home.journal_is_whole(&coupon).await;
    }
}

/// A request that was answered is answered again, with the used pass, with another or without any.
pub(super) async fn a_request_is_answered_again_whatever_is_shown(home: &Home) {
    let (deal, line) = demanding(home, Way::Buy, terms(9)).await;
    let pass = home.pass(&line, "alice");
    let bad = PassUse { line: fresh("line"), ..pass.clone() };
    let wish = |pass: Option<&PassUse>| PurchaseWish {
        pass: pass.cloned(),
        ..purchase(&deal, "alice", 2, Some("request"))
    };
    let ask = async |pass| home.store.deal_purchase(&Sending::once(), &[wish(pass)]).await.unwrap()[0];
    assert_eq!(ask(None).await, Purchase::PassRequired);
    assert_eq!(ask(Some(&pass)).await, Purchase::Bought { seq: 1, purchased: 2, remaining: 7 });
    for shown in [Some(&pass), None, Some(&bad)] {
        assert_eq!(ask(shown).await, Purchase::AlreadyBought { seq: 1, purchased: 2, remaining: 7 });
    }
    home.journal_is_whole(&deal).await;
}

/// Who has a coupon is told so before any pass is looked at.
pub(super) async fn who_has_a_coupon_needs_no_pass_to_hear_it(home: &Home) {
    let (coupon, line) = demanding(home, Way::Issue, terms(9)).await;
    let pass = home.pass(&line, "alice");
    assert_eq!(home.asked_one(Way::Issue, &coupon, "alice", &pass).await, Granted);
    for way in [Way::Issue, Way::HoldCoupon] {
        assert_eq!(home.asked(way, &coupon, &[("alice", None), ("alice", Some(&pass))]).await, [Had, Had]);
    }
    home.change(&coupon, CampaignChange::Close).await;
    assert_eq!(home.asked(Way::Issue, &coupon, &[("alice", None)]).await, [Had]);
}

/// The same batch once more uses nothing up again, and is answered again.
pub(super) async fn a_batch_with_passes_is_done_once(home: &Home) {
    let (coupon, line) = demanding(home, Way::Issue, terms(9)).await;
    let [a, b] = ["a", "b"].map(|user| home.pass(&line, user));
    let first = [issue(&coupon, ("a", Some(&a))), issue(&coupon, ("x", None))];
    let later = [issue(&coupon, ("b", Some(&b)))];
    home.is_done_once(
        &coupon,
        async |sending| home.store.coupon_issue(sending, &first).await,
        async |sending| home.store.coupon_issue(sending, &later).await,
    )
    .await;
}

/// The line is one of the terms: it is told, it makes a difference, and whatever changes the campaign leaves it there.
pub(super) async fn the_line_is_one_of_the_terms(home: &Home) {
    for kind in [CampaignKind::Coupon, CampaignKind::Deal] {
        let (campaign, line) = (unopened(kind), name("a line\nwith 7 words =9 {in} it"));
        let demanding = limited(9, 3).demanding_pass_of(line.clone());
        let created = home.open(&campaign, demanding.clone()).await;
        assert!(matches!(&created, CampaignOpen::Created(status) if status.line.as_ref() == Some(&line)));
        assert_eq!(home.status(&campaign).await.line.as_ref(), Some(&line));
        let before = home.status(&campaign).await;
        assert_eq!(
            home.open(&campaign, demanding.clone()).await,
            CampaignOpen::Changed(before),
            "the same terms"
        );

        let pass = home.pass(&line, "alice");
        let way = if kind == CampaignKind::Coupon { Way::Issue } else { Way::Buy };
        let keeps = async |what: &str| {
            let status = home.status(&campaign).await;
            assert_eq!(status.line.as_ref(), Some(&line), "{kind:?} {what}");
            assert_eq!(home.asked(way, &campaign, &[("nobody", None)]).await, [Required], "{kind:?} {what}");
        };
        assert_eq!(home.asked_one(way, &campaign, "alice", &pass).await, Granted);
        keeps("a grant").await;
        home.revoke(&campaign, "alice", 1).await;
        keeps("a revocation").await;
        home.change(&campaign, CampaignChange::Restock { by: 1 }).await;
        keeps("a restock").await;
        let id = HoldId::random();
        let bobs = home.pass(&line, "bob");
        let wish = HoldWish { pass: Some(bobs), ..hold(&campaign, id, "bob", 1, MOMENT) };
        let held = home.store.hold_place(&Sending::once(), &[wish]).await.unwrap()[0];
        assert!(matches!(held, HoldPlace::Held { .. }), "{held:?}");
        keeps("a hold").await;
        home.let_pass(MOMENT + Duration::from_millis(5)).await;
        assert_eq!(home.asked(way, &campaign, &[("nobody", None)]).await, [Required], "a hold that is over");
        keeps("a hold that is over").await;

        let other = home.open(&campaign, limited(10, 3).demanding_pass_of(name("another"))).await;
        assert!(matches!(&other, CampaignOpen::Changed(status) if status.line == Some(name("another"))));
        let without = home.open(&campaign, limited(10, 3)).await;
        assert!(matches!(&without, CampaignOpen::Changed(status) if status.line.is_none()), "{without:?}");
        assert_eq!(home.status(&campaign).await.line, None);
        let changes = home.journal_is_whole(&campaign).await;
        let opened: Vec<_> = changes
            .iter()
            .filter_map(|change| match change {
                JournalChange::Opened { terms } => Some(terms.line.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(opened, [Some(line), Some(name("another")), None]);
    }
    let sku = unopened(CampaignKind::Sku);
    let refused =
        home.store.campaign_open(&Sending::once(), &sku, &terms(1).demanding_pass_of(fresh("line"))).await;
    assert!(matches!(&refused, Err(StoreError::InvalidInput(why)) if why.field == "line"));
}

/// A campaign with used passes of every kind, to be told again as another; and what must then be so.
pub(super) async fn used_passes(home: &Home, kind: CampaignKind) -> (Vec<JournalEntry>, Vec<PassUse>, Name) {
    let way = if kind == CampaignKind::Coupon { Way::Issue } else { Way::Buy };
    let (campaign, line) = demanding(home, way, terms(20)).await;
    let passes: Vec<_> = ["a", "b\0", "c", "d"].map(|user| home.pass(&line, user)).to_vec();
    let [a, b, c, d] = &passes[..] else { unreachable!("there are four") };
    home.asked(way, &campaign, &[("a", Some(a)), ("b\0", Some(b))]).await;
    home.asked(way, &campaign, &[("c", Some(c))]).await;
    let hold_way = if kind == CampaignKind::Coupon { Way::HoldCoupon } else { Way::HoldDeal };
    home.asked(hold_way, &campaign, &[("d", Some(d))]).await;
    (home.journal_of(&campaign).await, passes, line)
}

pub(super) async fn the_passes_are_used(home: &Home, campaign: &Campaign, passes: &[PassUse], line: &Name) {
    let way = if campaign.kind == CampaignKind::Coupon { Way::Issue } else { Way::Buy };
    assert_eq!(home.status(campaign).await.line.as_ref(), Some(line));
    for (user, pass) in passes.iter().enumerate() {
        let user = format!("thief-{user}");
        let stolen = PassUse { user: name(&user), ..pass.clone() };
        assert_eq!(home.asked_one(way, campaign, &user, &stolen).await, Used, "{pass:?}");
    }
    assert_eq!(home.asked(way, campaign, &[("new", None)]).await, [Required]);
    assert_eq!(home.asked_one(way, campaign, "new", &home.pass(line, "new")).await, Granted);
}
