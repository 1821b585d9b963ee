//! One campaign in memory: what it has counted, and who has what.
//!
//! Every change is decided by an operation, written into the journal and applied by [`Shelf::apply`] (only the hot path of
//! coupons does the last two at once: [`Shelf::issue`]). So applying a journal from its beginning gives the same shelf: that is how a store on disk reopens.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::journal::Journal;
use super::large_map::{HashedMap, LargeMap};
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{
    Campaign, CampaignChange, CampaignKind, CampaignState, CampaignStatus, Counts, HoldId, HoldState, Issue,
    IssueWish, JournalChange, MAX_SWEEP, PassDenial, PassUse, REQUEST_KEPT, Switch, Terms, Token, UsedPass,
    UserShare, not_open,
};

/// All campaigns of a store.
#[derive(Debug, Default)]
pub(in crate::store::memory) struct Shelves(HashedMap<Campaign, Shelf>);

/// See the [module](self).
#[derive(Debug)]
pub(in crate::store::memory) struct Shelf {
    campaign: Arc<Campaign>,
    pub(in crate::store::memory) terms: Terms,
    pub(in crate::store::memory) switch: Switch,
    pub(in crate::store::memory) counts: Counts,
    /// Who has the coupon, or a hold on it. Empty for other kinds.
    seats: LargeMap<Name, Seat>,
    /// How much everybody has. Empty for coupons, which have seats.
    shares: LargeMap<Name, Share>,
    /// What was granted under which number, to whom. Empty for coupons.
    grants: LargeMap<u64, (Name, u64)>,
    holds: HashMap<HoldId, Hold>,
    requests: HashMap<Name, Request>,
    /// The admissions whose passes were used up, and when each may be forgotten.
    passes: HashMap<Token, Timestamp>,
    /// What is to be done at which time.
    due: BTreeSet<(Timestamp, Due)>,
}

/// A user's place at a coupon.
#[derive(Debug)]
enum Seat {
    Issued(u64),
    /// In a box, because there are millions of the others.
    Held(Box<HoldId>),
}

#[derive(Debug, Default)]
struct Share {
    granted: u64,
    held: u64,
}

/// A hold, whatever became of it.
#[derive(Clone, Debug)]
pub(in crate::store::memory) struct Hold {
    pub(in crate::store::memory) user: Name,
    pub(in crate::store::memory) quantity: u64,
    pub(in crate::store::memory) expires_at: Timestamp,
    /// How many were left when it was placed.
    pub(in crate::store::memory) remaining: u64,
    pub(in crate::store::memory) state: HoldState,
    /// When it may be forgotten: some time after it was settled.
    forget_at: Option<Timestamp>,
}

/// A purchase that was named by its client.
#[derive(Clone, Debug)]
pub(in crate::store::memory) struct Request {
    pub(in crate::store::memory) user: Name,
    pub(in crate::store::memory) quantity: u64,
    pub(in crate::store::memory) seq: u64,
    pub(in crate::store::memory) purchased: u64,
    pub(in crate::store::memory) remaining: u64,
    forget_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    GiveBack(HoldId),
    ForgetHold(HoldId),
    ForgetRequest(Name),
    ForgetPass(Token),
}

/// What a user has of a coupon.
pub(in crate::store::memory) enum Place {
    Free,
    Issued(u64),
    Held,
}

impl Shelves {
    /// The number of the last change; 0 when there is no such campaign.
    pub(in crate::store::memory) fn rev_of(&self, campaign: &Campaign) -> u64 {
        self.0.get(campaign).map_or(0, |shelf| shelf.counts.rev)
    }

    /// Those after one of them, sorted. Sorting all of them takes longer than keeping them sorted would; but it is asked for
    /// seldom, and grants are many.
    pub(in crate::store::memory) fn list(&self, after: Option<&Campaign>, limit: usize) -> Vec<Campaign> {
        let mut all: Vec<_> =
            self.0.keys().filter(|known| after.is_none_or(|after| *known > after)).collect();
        all.sort_unstable();
        all.into_iter().take(limit).cloned().collect()
    }

    pub(in crate::store::memory) fn remove(&mut self, campaign: &Campaign) {
        self.0.remove(campaign);
    }

    /// The campaign as it is now: what was due is done.
    pub(in crate::store::memory) fn at(
        &mut self,
        campaign: &Campaign,
        journal: &mut Journal,
        now: Timestamp,
    ) -> Option<&mut Shelf> {
        let shelf = self.0.get_mut(campaign)?;
        shelf.sweep(journal, now);
        Some(shelf)
    }

    /// A new campaign: its first entry is written.
    pub(in crate::store::memory) fn create(
        &mut self,
        campaign: &Campaign,
        terms: &Terms,
        journal: &mut Journal,
        now: Timestamp,
    ) -> &mut Shelf {
        let shelf =
            self.0.entry(campaign.clone()).or_insert_with(|| Shelf::new(campaign.clone(), terms.clone()));
        shelf.record(journal, now, JournalChange::Opened { terms: terms.clone() });
        shelf
    }

    /// Repeats a change, and writes it down.
    pub(in crate::store::memory) fn record(
        &mut self,
        campaign: &Campaign,
        journal: &mut Journal,
        at: Timestamp,
        change: JournalChange,
    ) {
        match (self.0.get_mut(campaign), change) {
            (Some(shelf), change) => shelf.record(journal, at, change),
            (None, JournalChange::Opened { terms }) => drop(self.create(campaign, &terms, journal, at)),
            // A campaign begins with its opening.
            (None, _) => {}
        }
    }

    /// Forgets all that was kept long enough by then.
    #[cfg(feature = "durable")]
    pub(in crate::store::memory) fn forget_until(&mut self, time: Timestamp) {
        self.0.values_mut().for_each(|shelf| shelf.forget_until(time));
    }

    /// Repeats what a journal says.
    #[cfg(feature = "durable")]
    pub(in crate::store::memory) fn apply(
        &mut self,
        campaign: &Campaign,
        at: Timestamp,
        change: &JournalChange,
    ) {
        let shelf = match (self.0.entry(campaign.clone()), change) {
            (Entry::Occupied(known), _) => known.into_mut(),
            (Entry::Vacant(place), JournalChange::Opened { terms }) => {
                place.insert(Shelf::new(campaign.clone(), terms.clone()))
            }
            // A journal begins with the opening; what does not was not written by us.
            (Entry::Vacant(_), _) => return,
        };
        shelf.apply(at, change);
    }
}

impl Shelf {
    fn new(campaign: Campaign, terms: Terms) -> Self {
        Self {
            campaign: Arc::new(campaign),
            terms,
            switch: Switch::Running,
            counts: Counts::default(),
            seats: LargeMap::default(),
            shares: LargeMap::default(),
            grants: LargeMap::default(),
            holds: HashMap::new(),
            requests: HashMap::new(),
            passes: HashMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Writes a change down, and does it.
    pub(in crate::store::memory) fn record(
        &mut self,
        journal: &mut Journal,
        now: Timestamp,
        change: JournalChange,
    ) {
        let rev = self.counts.rev + 1;
        self.apply(now, &change);
        journal.append(&self.campaign, rev, now, change);
    }

    /// Gives the user a seat if there is one: found, taken and counted in one look-up. Every new seat must be written down
    /// by [`Shelf::record_issued`] in the same step.
    pub(in crate::store::memory) fn issue(
        &mut self,
        state: CampaignState,
        now: Timestamp,
        wish: &IssueWish,
    ) -> (Issue, Option<UsedPass>) {
        let remaining = self.remaining();
        // Only where one is demanded: a look at it costs as much as the rest.
        let denied_pass = match self.terms.line {
            None => None,
            Some(_) => self.deny_pass(wish.pass.as_ref(), &wish.user, now),
        };
        let place = match self.seats.entry(wish.user.clone()) {
            Entry::Occupied(seat) => {
                let before = match seat.get() {
                    Seat::Issued(seq) => Issue::AlreadyIssued { seq: *seq },
                    Seat::Held(hold) => Issue::Held { hold: **hold },
                };
                return (before, None);
            }
            Entry::Vacant(place) => place,
        };
        let denied = match (state, denied_pass) {
            (CampaignState::Scheduled, _) => Issue::NotOpen { opens_at: not_open(&self.terms) },
            (CampaignState::Paused, _) => Issue::Paused,
            (CampaignState::Closed, _) => Issue::Closed,
            (CampaignState::Recovering, _) => Issue::Recovering,
            (_, Some(denied)) => denied.into(),
            _ if remaining == 0 => Issue::SoldOut,
            (CampaignState::Open | CampaignState::SoldOut, None) => {
                self.counts.seq += 1;
                self.counts.granted += 1;
                place.insert(Seat::Issued(self.counts.seq));
                let used = self.used_pass(wish.pass.as_ref());
                used.iter().for_each(|pass| self.remember_pass(pass));
                return (Issue::Issued { seq: self.counts.seq, remaining: remaining - 1 }, used);
            }
        };
        (denied, None)
    }

    /// Writes down to whom [`Shelf::issue`] gave a seat.
    pub(in crate::store::memory) fn record_issued(
        &mut self,
        journal: &mut Journal,
        now: Timestamp,
        issued: JournalChange,
    ) {
        let rev = self.counts.rev + 1;
        self.counts.rev += issued.revs();
        journal.append(&self.campaign, rev, now, issued);
    }

    /// Why the pass does not do, if one is demanded.
    pub(in crate::store::memory) fn deny_pass(
        &self,
        pass: Option<&PassUse>,
        user: &Name,
        now: Timestamp,
    ) -> Option<PassDenial> {
        let line = self.terms.line.as_ref()?;
        let is_used = |pass: &PassUse| self.passes.contains_key(&pass.jti);
        PassDenial::of(pass, line, user, now)
            .or_else(|| pass.is_some_and(is_used).then_some(PassDenial::Used))
    }

    /// What a grant uses up of the pass that was shown: nothing where none is demanded.
    pub(in crate::store::memory) fn used_pass(&self, pass: Option<&PassUse>) -> Option<UsedPass> {
        pass.filter(|_| self.terms.line.is_some()).map(PassUse::used)
    }

    pub(in crate::store::memory) fn status(&self, now: Timestamp) -> CampaignStatus {
        CampaignStatus::at(now, &self.terms, self.switch, self.counts)
    }

    pub(in crate::store::memory) fn state(&self, now: Timestamp) -> CampaignState {
        CampaignState::of(now, &self.terms, self.switch)
    }

    pub(in crate::store::memory) fn remaining(&self) -> u64 {
        self.terms.quantity.saturating_sub(self.counts.granted + self.counts.held)
    }

    pub(in crate::store::memory) fn place_of(&self, user: &Name) -> Place {
        match self.seats.get(user) {
            None => Place::Free,
            Some(Seat::Issued(seq)) => Place::Issued(*seq),
            Some(Seat::Held(_)) => Place::Held,
        }
    }

    /// What the user has, and how much of it counts towards the limit.
    pub(in crate::store::memory) fn share_of(&self, user: &Name) -> UserShare {
        match self.campaign.kind {
            CampaignKind::Coupon => match self.place_of(user) {
                Place::Free => UserShare::default(),
                Place::Issued(seq) => UserShare { granted: 1, held: 0, seq: Some(seq) },
                Place::Held => UserShare { granted: 0, held: 1, seq: None },
            },
            CampaignKind::Deal | CampaignKind::Sku => {
                let share = self.shares.get(user);
                let (granted, held) = share.map_or((0, 0), |share| (share.granted, share.held));
                UserShare { granted, held, seq: None }
            }
        }
    }

    /// How much the grant of that number was, if the user has it.
    pub(in crate::store::memory) fn granted_to(&self, user: &Name, seq: u64) -> Option<u64> {
        if self.campaign.kind == CampaignKind::Coupon {
            return matches!(self.place_of(user), Place::Issued(its) if its == seq).then_some(1);
        }
        self.grants.get(&seq).filter(|(owner, _)| owner == user).map(|(_, quantity)| *quantity)
    }

    /// What was granted to one under these numbers is another's.
    pub(in crate::store::memory) fn rename(&mut self, user: &Name, alias: &Name, seqs: &[u64]) {
        if let Some(seat) = self.seats.remove(user) {
            self.seats.insert(alias.clone(), seat);
        }
        if let Some(share) = self.shares.remove(user) {
            self.shares.insert(alias.clone(), share);
        }
        for seq in seqs {
            let theirs = self.grants.get(seq).filter(|(owner, _)| owner == user);
            if let Some(quantity) = theirs.map(|(_, quantity)| *quantity) {
                self.grants.insert(*seq, (alias.clone(), quantity));
            }
        }
    }

    pub(in crate::store::memory) fn hold(&self, id: HoldId) -> Option<&Hold> {
        self.holds.get(&id)
    }

    pub(in crate::store::memory) fn request(&self, request: &Name) -> Option<&Request> {
        self.requests.get(request)
    }

    /// Does what is due: gives back the holds whose time is over, forgets what was kept long enough.
    fn sweep(&mut self, journal: &mut Journal, now: Timestamp) {
        for _ in 0..MAX_SWEEP {
            let Some((at, due)) = self.due.first().filter(|(at, _)| *at <= now).cloned() else { return };
            self.due.pop_first();
            match due {
                Due::GiveBack(id) => self.give_back(journal, now, id),
                forget => self.forget(at, &forget),
            }
        }
    }

    /// Not a change: nothing that is counted changes, and it is not in the journal. The same id may have been used again since,
    /// so only what was to be forgotten at that very time is.
    fn forget(&mut self, at: Timestamp, due: &Due) {
        match due {
            Due::ForgetHold(id) if self.holds.get(id).is_some_and(|hold| hold.forget_at == Some(at)) => {
                self.holds.remove(id);
            }
            Due::ForgetRequest(request)
                if self.requests.get(request).is_some_and(|known| known.forget_at == at) =>
            {
                self.requests.remove(request);
            }
            Due::ForgetPass(jti) if self.passes.get(jti) == Some(&at) => {
                self.passes.remove(jti);
            }
            _ => {}
        }
    }

    /// Forgets all that was kept long enough by then: what a journal that is read anew brings back is years old.
    #[cfg(feature = "durable")]
    fn forget_until(&mut self, time: Timestamp) {
        let old = self.due.iter().take_while(|(at, _)| *at <= time);
        let old: Vec<_> = old.filter(|(_, due)| !matches!(due, Due::GiveBack(_))).cloned().collect();
        for entry in old {
            self.forget(entry.0, &entry.1);
            self.due.remove(&entry);
        }
    }

    /// Gives the hold back if its time is over, also when so many others are due that its turn has not come.
    pub(in crate::store::memory) fn give_back(&mut self, journal: &mut Journal, now: Timestamp, id: HoldId) {
        if let Some(Hold { user, quantity, state: HoldState::Held, expires_at, .. }) = self.holds.get(&id)
            && *expires_at <= now
        {
            let change = JournalChange::Expired { id, user: user.clone(), quantity: *quantity };
            self.record(journal, now, change);
        }
    }

    fn apply(&mut self, at: Timestamp, change: &JournalChange) {
        self.counts.rev += change.revs();
        match change {
            JournalChange::Opened { terms } => self.terms = terms.clone(),
            JournalChange::Changed { change } => self.apply_change(*change),
            JournalChange::Issued { seq, users, passes } => {
                passes.iter().for_each(|pass| self.remember_pass(pass));
                for (seq, user) in (*seq..).zip(users) {
                    self.counts.granted += 1;
                    self.grant(seq, user, 1);
                }
            }
            JournalChange::Bought { seq, user, quantity, request, pass } => {
                pass.iter().for_each(|pass| self.remember_pass(pass));
                self.counts.granted += quantity;
                self.grant(*seq, user, *quantity);
                if let Some(request) = request.as_ref().filter(|_| self.campaign.kind == CampaignKind::Deal) {
                    self.remember_request(at, request, *seq, user, *quantity);
                }
            }
            JournalChange::Held { id, user, quantity, expires_at, pass } => {
                pass.iter().for_each(|pass| self.remember_pass(pass));
                self.counts.held += quantity;
                self.take_hold(*id, user, *quantity, *expires_at);
            }
            JournalChange::Confirmed { id, seq, user, quantity } => {
                self.settle(at, *id, HoldState::Confirmed { seq: *seq });
                self.release(*id, user, *quantity);
                self.counts.granted += quantity;
                self.grant(*seq, user, *quantity);
            }
            JournalChange::Cancelled { id, user, quantity } => {
                self.settle(at, *id, HoldState::Cancelled);
                self.release(*id, user, *quantity);
            }
            JournalChange::Expired { id, user, quantity } => {
                self.settle(at, *id, HoldState::Expired);
                self.release(*id, user, *quantity);
            }
            JournalChange::Revoked { seq, user, quantity } => self.take_back(*seq, user, *quantity),
            // Their numbers may have been told to somebody.
            JournalChange::Lost { count } => self.counts.seq += count,
        }
    }

    fn apply_change(&mut self, change: CampaignChange) {
        match change {
            CampaignChange::Pause => self.switch = Switch::Paused,
            CampaignChange::Resume => self.switch = Switch::Running,
            CampaignChange::Close => self.switch = Switch::Closed,
            CampaignChange::Restock { by } => self.terms.quantity += by,
        }
    }

    fn grant(&mut self, seq: u64, user: &Name, quantity: u64) {
        self.counts.seq = self.counts.seq.max(seq);
        if self.campaign.kind == CampaignKind::Coupon {
            self.seats.insert(user.clone(), Seat::Issued(seq));
            return;
        }
        self.shares.entry(user.clone()).or_default().granted += quantity;
        self.grants.insert(seq, (user.clone(), quantity));
    }

    fn take_back(&mut self, seq: u64, user: &Name, quantity: u64) {
        self.counts.granted = self.counts.granted.saturating_sub(quantity);
        if self.campaign.kind == CampaignKind::Coupon {
            self.seats.remove(user);
            return;
        }
        self.grants.remove(&seq);
        self.change_share(user, |share| share.granted = share.granted.saturating_sub(quantity));
    }

    /// Whoever has nothing any more is forgotten.
    fn change_share(&mut self, user: &Name, change: impl FnOnce(&mut Share)) {
        let Some(share) = self.shares.get_mut(user) else { return };
        change(share);
        if share.granted + share.held == 0 {
            self.shares.remove(user);
        }
    }

    fn remember_request(&mut self, at: Timestamp, request: &Name, seq: u64, user: &Name, quantity: u64) {
        let purchased = self.shares.get(user).map_or(0, |share| share.granted);
        let (remaining, forget_at) = (self.remaining(), at + REQUEST_KEPT);
        let remembered = Request { user: user.clone(), quantity, seq, purchased, remaining, forget_at };
        self.requests.insert(request.clone(), remembered);
        self.due.insert((forget_at, Due::ForgetRequest(request.clone())));
    }

    fn remember_pass(&mut self, pass: &UsedPass) {
        self.passes.insert(pass.jti, pass.forget_at());
        self.due.insert((pass.forget_at(), Due::ForgetPass(pass.jti)));
    }

    fn take_hold(&mut self, id: HoldId, user: &Name, quantity: u64, expires_at: Timestamp) {
        if self.campaign.kind == CampaignKind::Coupon {
            self.seats.insert(user.clone(), Seat::Held(Box::new(id)));
        } else {
            self.shares.entry(user.clone()).or_default().held += quantity;
        }
        let (user, remaining) = (user.clone(), self.remaining());
        let (state, forget_at) = (HoldState::Held, None);
        self.holds.insert(id, Hold { user, quantity, expires_at, remaining, state, forget_at });
        self.due.insert((expires_at, Due::GiveBack(id)));
    }

    /// What was put aside is not any more.
    fn release(&mut self, id: HoldId, user: &Name, quantity: u64) {
        self.counts.held = self.counts.held.saturating_sub(quantity);
        if self.campaign.kind == CampaignKind::Coupon {
            if matches!(self.seats.get(user), Some(Seat::Held(its)) if **its == id) {
                self.seats.remove(user);
            }
        } else {
            self.change_share(user, |share| share.held = share.held.saturating_sub(quantity));
        }
    }

    fn settle(&mut self, at: Timestamp, id: HoldId, state: HoldState) {
        if let Some(hold) = self.holds.get_mut(&id) {
            hold.state = state;
            hold.forget_at = Some(at + REQUEST_KEPT);
            self.due.remove(&(hold.expires_at, Due::GiveBack(id)));
            self.due.insert((at + REQUEST_KEPT, Due::ForgetHold(id)));
        }
    }
}
