//! The operations on campaigns as such, in memory.

use super::stock::Stock;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, CampaignChanged, CampaignOpen, CampaignStatus, JournalChange, MAX_QUANTITY,
    Switch, Terms, UserShare,
};

pub(super) fn campaign_open(stock: &mut Stock<'_>, campaign: &Campaign, terms: &Terms) -> CampaignOpen {
    let Stock { shelves, journal, now, .. } = stock;
    let Some(shelf) = shelves.at(campaign, journal, *now) else {
        return CampaignOpen::Created(shelves.create(campaign, terms, journal, *now).status(*now));
    };
    let issued = shelf.counts.granted + shelf.counts.held;
    if terms.quantity < issued {
        return CampaignOpen::BelowIssued { issued };
    }
    if shelf.terms != *terms {
        shelf.record(journal, *now, JournalChange::Opened { terms: terms.clone() });
    }
    CampaignOpen::Changed(shelf.status(*now))
}

pub(super) fn campaign_change(
    stock: &mut Stock<'_>,
    campaign: &Campaign,
    change: CampaignChange,
) -> CampaignChanged {
    let Stock { shelves, journal, now, .. } = stock;
    let Some(shelf) = shelves.at(campaign, journal, *now) else { return CampaignChanged::Unknown };
    let is_done = match (change, shelf.switch) {
        (CampaignChange::Close, Switch::Closed) => true,
        (_, Switch::Closed) => return CampaignChanged::Closed,
        (CampaignChange::Pause, switch) => switch == Switch::Paused,
        (CampaignChange::Resume, switch) => switch == Switch::Running,
        (CampaignChange::Close, _) => false,
        (CampaignChange::Restock { by }, _) if by > MAX_QUANTITY - shelf.terms.quantity => {
            return CampaignChanged::TooMany;
        }
        (CampaignChange::Restock { by }, _) => by == 0,
    };
    if !is_done {
        shelf.record(journal, *now, JournalChange::Changed { change });
    }
    CampaignChanged::Now(shelf.status(*now))
}

pub(super) fn campaign_read(stock: &mut Stock<'_>, campaign: &Campaign) -> Option<CampaignStatus> {
    let Stock { shelves, journal, now, .. } = stock;
    shelves.at(campaign, journal, *now).map(|shelf| shelf.status(*now))
}

pub(super) fn share_read(stock: &mut Stock<'_>, campaign: &Campaign, user: &Name) -> Option<UserShare> {
    let Stock { shelves, journal, now, .. } = stock;
    shelves.at(campaign, journal, *now).map(|shelf| shelf.share_of(user))
}

pub(super) fn campaign_list(stock: &mut Stock<'_>, after: Option<&Campaign>, limit: usize) -> Vec<Campaign> {
    stock.shelves.list(after, limit)
}
