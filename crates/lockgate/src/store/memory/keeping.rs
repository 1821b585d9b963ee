//! The operations that forget, in memory. A store that is rebuilt from its journal forgets nothing: the journal would bring
//! it back.

use super::stock::Stock;
use crate::key::Name;
use crate::store::{Campaign, CampaignForget, CampaignState, UserErase};

pub(super) fn campaign_forget(stock: &mut Stock<'_>, campaign: &Campaign, rev: u64) -> CampaignForget {
    let Stock { shelves, journal, now, .. } = stock;
    let Some(shelf) = shelves.at(campaign, journal, *now) else { return CampaignForget::Forgotten };
    if shelf.state(*now) != CampaignState::Closed || shelf.counts.held > 0 {
        return CampaignForget::NotOver;
    }
    if shelf.counts.rev != rev {
        return CampaignForget::Changed { rev: shelf.counts.rev };
    }
    if journal.in_memory().is_none() {
        return CampaignForget::Kept;
    }
    shelves.remove(campaign);
    CampaignForget::Forgotten
}

pub(super) fn user_erase(
    stock: &mut Stock<'_>,
    campaign: &Campaign,
    user: &Name,
    alias: &Name,
    seqs: &[u64],
) -> UserErase {
    let Stock { shelves, journal, now, .. } = stock;
    let Some(shelf) = shelves.at(campaign, journal, *now) else { return UserErase::Erased };
    let share = shelf.share_of(user);
    if share.held > 0 {
        return UserErase::Held;
    }
    if share.granted > 0 && journal.in_memory().is_none() {
        return UserErase::Kept;
    }
    shelf.rename(user, alias, seqs);
    UserErase::Erased
}
