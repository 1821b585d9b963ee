//! What the operations that forget must do.
#![expect(clippy::unwrap_used, reason = "assertions: a store that does not answer fails the suite")]

use super::stock::{LONG_HOLD, limited, terms, unopened};
use super::{Home, name};
use crate::store::{
    CampaignChange, CampaignForget, CampaignKind, HoldId, Issue, Purchase, Revoke, Settlement, UserErase,
    UserShare,
};

/// [`Store::campaign_forget`](crate::store::Store::campaign_forget)
pub async fn campaign_forget(home: &Home) {
    let deal = home.opened(CampaignKind::Deal, terms(10)).await;
    home.buy(&deal, "a", 2).await;
    let hold = HoldId::random();
    home.hold(&deal, hold, "b", 1, LONG_HOLD).await;
    let forget = async |rev| home.store.campaign_forget(&deal, rev).await.unwrap();
    assert_eq!(forget(3).await, CampaignForget::NotOver);
    home.change(&deal, CampaignChange::Close).await;
    assert_eq!(forget(4).await, CampaignForget::NotOver, "something is held");
    home.settle(&deal, hold, "b", Settlement::Cancel).await;
    assert_eq!(forget(4).await, CampaignForget::Changed { rev: 5 }, "whoever asks does not know all of it");
    assert_eq!(home.status(&deal).await.granted, 2, "nothing has changed so far");

    let partition = home.store.partition_of(deal.home());
    assert_eq!(forget(5).await, CampaignForget::Forgotten);
    assert_eq!(home.store.campaign_read(&deal).await.unwrap(), None);
    assert_eq!(home.store.share_read(&deal, &name("a")).await.unwrap(), None);
    let listed = home.store.campaign_list(partition, None, usize::MAX).await.unwrap();
    assert!(!listed.contains(&deal));
    assert_eq!(forget(5).await, CampaignForget::Forgotten, "a second time changes nothing");
    let unknown = unopened(CampaignKind::Coupon);
    assert_eq!(home.store.campaign_forget(&unknown, 0).await.unwrap(), CampaignForget::Forgotten);
}

/// [`Store::user_erase`](crate::store::Store::user_erase)
pub async fn user_erase(home: &Home) {
    let coupon = home.opened(CampaignKind::Coupon, terms(10)).await;
    home.issue(&coupon, &["a", "b"]).await;
    let before = home.status(&coupon).await;
    let erase = async |campaign, user, seqs: &[u64]| {
        home.store.user_erase(campaign, &name(user), &name(&format!("erased {user}")), seqs).await.unwrap()
    };
    for _ in 0..2 {
        assert_eq!(erase(&coupon, "a", &[1]).await, UserErase::Erased);
    }
    assert_eq!(home.status(&coupon).await, before, "no change, and nothing counted otherwise");
    assert_eq!(home.share(&coupon, "a").await, UserShare::default());
    assert_eq!(home.share(&coupon, "erased a").await.seq, Some(1));
    assert_eq!(
        home.issue(&coupon, &["a", "b"]).await,
        [Issue::Issued { seq: 3, remaining: 7 }, Issue::AlreadyIssued { seq: 2 },]
    );
    home.hold(&coupon, HoldId::random(), "c", 1, LONG_HOLD).await;
    assert_eq!(erase(&coupon, "c", &[]).await, UserErase::Held);
    assert_eq!(home.share(&coupon, "c").await.held, 1);

    let deal = home.opened(CampaignKind::Deal, limited(20, 5)).await;
    home.buy(&deal, "a", 2).await;
    home.buy(&deal, "b", 1).await;
    home.buy(&deal, "a", 3).await;
    assert_eq!(erase(&deal, "a", &[1, 2]).await, UserErase::Erased, "what is another's stays so");
    assert_eq!(erase(&deal, "a", &[3]).await, UserErase::Erased, "the rest of them");
    assert_eq!(home.revoke(&deal, "a", 3).await, Revoke::NotGranted);
    assert_eq!(home.share(&deal, "a").await.granted, 0);
    assert_eq!(home.share(&deal, "erased a").await.granted, 5);
    assert_eq!(home.revoke(&deal, "a", 1).await, Revoke::NotGranted);
    assert_eq!(home.revoke(&deal, "erased a", 1).await, Revoke::Revoked { remaining: 16 });
    assert_eq!(home.revoke(&deal, "b", 2).await, Revoke::Revoked { remaining: 17 });
    assert!(
        matches!(home.buy(&deal, "a", 5).await, Purchase::Bought { .. }),
        "nobody knows that it is the same"
    );
    home.hold(&deal, HoldId::random(), "d", 1, LONG_HOLD).await;
    assert_eq!(erase(&deal, "d", &[]).await, UserErase::Held);
    assert!(home.store.user_erase(&deal, &name("a"), &name("x"), &[1; 1_001]).await.is_err());
}
