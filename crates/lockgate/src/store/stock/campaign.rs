//! What is limited: its terms, and how it stands.

use std::fmt;

use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;

/// The largest quantity: what JSON, Lua and JavaScript can still count without a mistake.
pub const MAX_QUANTITY: u64 = (1 << 53) - 1;

/// What a campaign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CampaignKind {
    /// One per user.
    Coupon,
    /// Some per user.
    Deal,
    /// Taken in orders, several articles at once.
    Sku,
}

impl CampaignKind {
    /// All kinds there are.
    pub const ALL: [CampaignKind; 3] = [CampaignKind::Coupon, CampaignKind::Deal, CampaignKind::Sku];

    /// The word for it in keys and in the journal.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CampaignKind::Coupon => "coupon",
            CampaignKind::Deal => "deal",
            CampaignKind::Sku => "sku",
        }
    }

    /// The kind of that word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Which campaign. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Campaign {
    /// What it is; campaigns of different kinds may have the same name.
    pub kind: CampaignKind,
    /// What it is called.
    pub name: Name,
    /// With which others it shares a partition, so that one order can take from all of them in one step. `None`: the
    /// partition of its own name. It is a part of what identifies the campaign.
    pub group: Option<Name>,
}

impl Campaign {
    /// A campaign in the partition of its own name.
    #[must_use]
    pub const fn new(kind: CampaignKind, name: Name) -> Self {
        Self { kind, name, group: None }
    }

    /// Kind, group and name in one text, as the journal and the ledger call it: `coupon::summer`, or with a group (and its
    /// length) `sku:4:shopshirt`.
    #[must_use]
    pub fn called(&self) -> String {
        let kind = self.kind.as_str();
        match &self.group {
            None => format!("{kind}::{}", self.name),
            Some(group) => format!("{kind}:{}:{group}{}", group.as_str().len(), self.name),
        }
    }

    /// The campaign of which [`called`](Self::called) says this.
    #[must_use]
    pub fn from_called(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        let (length, rest) = rest.split_once(':')?;
        let kind = CampaignKind::from_word(kind)?;
        if length.is_empty() {
            return Some(Self::new(kind, Name::new("name", rest).ok()?));
        }
        let (group, name) = rest.split_at_checked(length.parse().ok()?)?;
        let group = Some(Name::new("group", group).ok()?);
        Some(Self { group, ..Self::new(kind, Name::new("name", name).ok()?) })
    }

    /// The name whose partition it belongs to.
    #[must_use]
    pub fn home(&self) -> &Name {
        self.group.as_ref().unwrap_or(&self.name)
    }
}

impl fmt::Debug for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind.as_str(), self.name)?;
        self.group.as_ref().map_or(Ok(()), |group| write!(f, " of {group:?}"))
    }
}

/// How much there is of a campaign, when it can be had, and how much of it by one user. Always makes sense: nonsense
/// cannot be constructed.
///
/// ```
/// use lockgate::clock::Timestamp;
/// use lockgate::key::Name;
/// use lockgate::stock::Terms;
///
/// let always = Terms::new(300)?;
/// let (nine, ten) = (Timestamp::from_millis(9_000), Timestamp::from_millis(10_000));
/// let window = Terms::new(300)?.between(Some(nine), Some(ten))?;
/// assert!(Terms::new(300)?.between(Some(ten), Some(nine)).is_err());
/// let two_each = Terms::new(300)?.per_user(2)?;
/// let after_the_line = Terms::new(300)?.demanding_pass_of(Name::new("line", "tour")?);
/// # Ok::<(), lockgate::error::InvalidInput>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub struct Terms {
    pub(crate) quantity: u64,
    pub(crate) opens_at: Option<Timestamp>,
    pub(crate) closes_at: Option<Timestamp>,
    pub(crate) per_user: Option<u64>,
    #[cfg_attr(feature = "durable", serde(default, skip_serializing_if = "Option::is_none"))]
    pub(crate) line: Option<Name>,
}

impl Terms {
    /// So many in all, to be had from now on, without end, and by one user as many as there are (of a coupon: one).
    ///
    /// # Errors
    ///
    /// When `quantity` is above [`MAX_QUANTITY`]. Zero is allowed: it is sold out from the beginning.
    pub fn new(quantity: u64) -> Result<Self, InvalidInput> {
        check_quantity("quantity", quantity)?;
        Ok(Self { quantity, opens_at: None, closes_at: None, per_user: None, line: None })
    }

    /// To be had from `opens_at` on, and no longer from `closes_at` on, by the store's clock.
    ///
    /// # Errors
    ///
    /// When it would close before or when it opens, or when a time is beyond the year 2255.
    pub fn between(
        self,
        opens_at: Option<Timestamp>,
        closes_at: Option<Timestamp>,
    ) -> Result<Self, InvalidInput> {
        for (field, time) in [("opens_at", opens_at), ("closes_at", closes_at)] {
            if time.is_some_and(|time| time.as_micros() > MAX_QUANTITY) {
                return Err(InvalidInput::new(field, "is beyond the year 2255"));
            }
        }
        match (opens_at, closes_at) {
            (Some(opens), Some(closes)) if closes <= opens => {
                Err(InvalidInput::new("closes_at", "must be later than opens_at"))
            }
            (_, Some(closes)) if closes.as_micros() == 0 => {
                Err(InvalidInput::new("closes_at", "must be later than 1970"))
            }
            // What opened when time began has always been open: one way to say it, not two.
            _ => Ok(Self { opens_at: opens_at.filter(|opens| opens.as_micros() > 0), closes_at, ..self }),
        }
    }

    /// At most so many by one user, holds included. A coupon is always one per user, whatever is said here.
    ///
    /// # Errors
    ///
    /// When it is zero or above [`MAX_QUANTITY`].
    pub fn per_user(self, limit: u64) -> Result<Self, InvalidInput> {
        if limit == 0 {
            return Err(InvalidInput::new(
                "per_user",
                "must be at least 1; pause the campaign to sell nothing",
            ));
        }
        check_quantity("per_user", limit)?;
        Ok(Self { per_user: Some(limit), ..self })
    }

    /// Only for those who were admitted by that line: each wish shows a pass ([`PassUse`](crate::store::PassUse)), and each
    /// admission is good for one grant. Not for articles: orders show no pass.
    #[must_use]
    pub fn demanding_pass_of(self, line: Name) -> Self {
        Self { line: Some(line), ..self }
    }
}

impl Terms {
    /// Refuses what a campaign of that kind does not keep.
    pub(crate) fn check_for(&self, campaign: &Campaign) -> Result<(), InvalidInput> {
        if campaign.kind == CampaignKind::Sku && self.per_user.is_some() {
            return Err(InvalidInput::new(
                "per_user",
                "is for coupons and deals: orders know no limit per user",
            ));
        }
        if campaign.kind == CampaignKind::Sku && self.line.is_some() {
            return Err(InvalidInput::new("line", "is for coupons and deals: orders show no pass"));
        }
        Ok(())
    }
}

/// Refuses what cannot be counted without a mistake.
pub(crate) fn check_quantity(field: &'static str, quantity: u64) -> Result<(), InvalidInput> {
    if quantity > MAX_QUANTITY {
        return Err(InvalidInput::new(field, format!("must be at most {MAX_QUANTITY}")));
    }
    Ok(())
}

/// Whether somebody has switched a campaign off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Switch {
    #[default]
    Running,
    Paused,
    Closed,
}

/// How a campaign stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CampaignStatus {
    /// How many there are in all.
    pub quantity: u64,
    /// How many are granted and not revoked.
    pub granted: u64,
    /// How many are held for somebody who has not confirmed yet.
    pub held: u64,
    /// The number of the last grant. Above `granted` when one was for several, or revoked.
    pub seq: u64,
    /// The number of the last change.
    pub rev: u64,
    /// From when on it can be had, if that was said.
    pub opens_at: Option<Timestamp>,
    /// From when on it can no longer be had, if that was said.
    pub closes_at: Option<Timestamp>,
    /// How many one user may have, if that was said.
    pub per_user: Option<u64>,
    /// Whose pass it demands, if it does.
    pub line: Option<Name>,
    /// What somebody who asks now would meet.
    pub state: CampaignState,
}

impl CampaignStatus {
    pub(crate) fn at(now: Timestamp, terms: &Terms, switch: Switch, counts: Counts) -> Self {
        let Counts { granted, held, seq, rev } = counts;
        let is_gone = granted + held >= terms.quantity;
        let state = match CampaignState::of(now, terms, switch) {
            CampaignState::Open if is_gone => CampaignState::SoldOut,
            state => state,
        };
        let Terms { quantity, opens_at, closes_at, per_user, line } = terms.clone();
        Self { quantity, granted, held, seq, rev, opens_at, closes_at, per_user, line, state }
    }

    /// How many are left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.quantity.saturating_sub(self.granted + self.held)
    }
}

/// What a campaign has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) granted: u64,
    pub(crate) held: u64,
    pub(crate) seq: u64,
    pub(crate) rev: u64,
}

/// What somebody who asks for something of a campaign now would meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CampaignState {
    /// It opens later.
    Scheduled,
    /// It can be had.
    Open,
    /// Somebody has paused it.
    Paused,
    /// It is open, and none is left.
    SoldOut,
    /// Its time is over, or somebody has closed it.
    Closed,
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
}

impl CampaignState {
    /// What is closed, by somebody or by its time, is closed; what is paused says so even before it opens.
    pub(crate) fn of(now: Timestamp, terms: &Terms, switch: Switch) -> Self {
        match switch {
            Switch::Closed => CampaignState::Closed,
            _ if terms.closes_at.is_some_and(|closes| now >= closes) => CampaignState::Closed,
            Switch::Paused => CampaignState::Paused,
            Switch::Running if terms.opens_at.is_some_and(|opens| now < opens) => CampaignState::Scheduled,
            Switch::Running => CampaignState::Open,
        }
    }

    /// The word for it in the HTTP contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CampaignState::Scheduled => "scheduled",
            CampaignState::Open => "open",
            CampaignState::Paused => "paused",
            CampaignState::SoldOut => "sold-out",
            CampaignState::Closed => "closed",
            CampaignState::Recovering => "recovering",
        }
    }
}

/// The answer to [`Store::campaign_open`](crate::store::Store::campaign_open).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CampaignOpen {
    /// The campaign is new.
    Created(CampaignStatus),
    /// The campaign was there and has these terms now.
    Changed(CampaignStatus),
    /// The quantity is below what is granted and held already; nothing has changed.
    BelowIssued {
        /// How many are granted or held.
        issued: u64,
    },
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
}

/// A change of a campaign while it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "durable", serde(rename_all = "snake_case"))]
pub enum CampaignChange {
    /// Grants nothing until it is resumed. Holds can still be settled.
    Pause,
    /// Goes on.
    Resume,
    /// Grants nothing any more, for ever. Holds can still be settled.
    Close,
    /// Adds so many to the quantity.
    Restock {
        /// How many.
        by: u64,
    },
}

/// The answer to [`Store::campaign_change`](crate::store::Store::campaign_change).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CampaignChanged {
    /// It stands like this now; if it did before, nothing has changed.
    Now(CampaignStatus),
    /// It is closed, and does not come back; nothing has changed.
    Closed,
    /// The sum would be above [`MAX_QUANTITY`]; nothing has changed.
    TooMany,
    /// There is no such campaign.
    Unknown,
    /// The server behind the store has changed, and it is being looked at whether something is missing.
    Recovering,
}

/// The answer of a campaign that opens later. Only such a one is asked for its time.
pub(crate) fn not_open(terms: &Terms) -> Timestamp {
    terms.opens_at.unwrap_or(Timestamp::from_micros(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(opens_micros: u64, closes_micros: u64) -> Result<Terms, InvalidInput> {
        let time = |micros| Some(Timestamp::from_micros(micros));
        Terms::new(1)?.between(time(opens_micros), time(closes_micros))
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

        #[test]
        fn a_campaign_is_called_by_one_name_only(name in ".+", group in proptest::option::of(".+")) {
            let group = group.map(|group| Name::new("group", group).unwrap());
            let campaign = Campaign { group, ..Campaign::new(CampaignKind::Sku, Name::new("name", name).unwrap()) };
            proptest::prop_assert_eq!(Campaign::from_called(&campaign.called()).unwrap(), campaign);
        }
    }

    #[test]
    fn terms_that_make_no_sense_cannot_be_made() {
        assert_eq!(Terms::new(MAX_QUANTITY + 1).unwrap_err().field, "quantity");
        assert_eq!(between(5, 5).unwrap_err().field, "closes_at");
        assert_eq!(between(5, 4).unwrap_err().field, "closes_at");
        assert_eq!(between(0, 0).unwrap_err().field, "closes_at");
        assert_eq!(between(MAX_QUANTITY + 1, MAX_QUANTITY + 2).unwrap_err().field, "opens_at");
        assert_eq!(Terms::new(1).unwrap().per_user(0).unwrap_err().field, "per_user");
        assert_eq!(Terms::new(1).unwrap().per_user(MAX_QUANTITY + 1).unwrap_err().field, "per_user");
        assert!(between(4, 5).is_ok() && Terms::new(0).is_ok());
    }

    #[test]
    fn what_opened_when_time_began_has_no_opening_time() {
        assert_eq!(between(0, 5).unwrap().opens_at, None);
    }

    #[test]
    fn the_switch_and_the_window_say_together_what_somebody_meets() {
        let terms = between(10, 20).unwrap();
        let state =
            |micros, switch| CampaignState::of(Timestamp::from_micros(micros), &terms, switch).as_str();
        let over_time = |switch| [9, 10, 19, 20].map(|micros| state(micros, switch));
        assert_eq!(over_time(Switch::Running), ["scheduled", "open", "open", "closed"]);
        assert_eq!(over_time(Switch::Paused), ["paused", "paused", "paused", "closed"]);
        assert_eq!(over_time(Switch::Closed), ["closed"; 4]);
    }
}
