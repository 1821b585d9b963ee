//! The words of the coupon operations.

use crate::clock::Timestamp;
use crate::error::InvalidInput;
use crate::key::Name;

/// The largest quantity: what JSON, Lua and JavaScript can still count without a mistake.
pub const MAX_QUANTITY: u64 = (1 << 53) - 1;

/// How many users one call of [`Store::coupon_issue`](super::Store::coupon_issue) takes. A script blocks Redis while it
/// runs, and a thousand users are about a millisecond.
pub const MAX_ISSUE_BATCH: usize = 1_000;

/// How many there are of a coupon, and when it can be had. Always makes sense: nonsense cannot be constructed.
///
/// ```
/// use lockgate::clock::Timestamp;
/// use lockgate::stock::CouponTerms;
///
/// let always = CouponTerms::new(300)?;
/// let (nine, ten) = (Timestamp::from_millis(9_000), Timestamp::from_millis(10_000));
/// let window = CouponTerms::new(300)?.between(Some(nine), Some(ten))?;
/// assert!(CouponTerms::new(300)?.between(Some(ten), Some(nine)).is_err());
/// # Ok::<(), lockgate::error::InvalidInput>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CouponTerms {
    pub(crate) quantity: u64,
    pub(crate) opens_at: Option<Timestamp>,
    pub(crate) closes_at: Option<Timestamp>,
}

impl CouponTerms {
    /// So many coupons, to be had from now on and without end.
    ///
    /// # Errors
    ///
    /// When `quantity` is above [`MAX_QUANTITY`]. Zero is allowed: it is sold out from the beginning.
    pub fn new(quantity: u64) -> Result<Self, InvalidInput> {
        if quantity > MAX_QUANTITY {
            return Err(InvalidInput::new("quantity", format!("must be at most {MAX_QUANTITY}")));
        }
        Ok(Self { quantity, opens_at: None, closes_at: None })
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
}

/// How a coupon stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CouponStatus {
    /// How many there are in all.
    pub quantity: u64,
    /// How many were issued.
    pub issued: u64,
    /// From when on it can be had, if that was said.
    pub opens_at: Option<Timestamp>,
    /// From when on it can no longer be had, if that was said.
    pub closes_at: Option<Timestamp>,
    /// What somebody who asks now would meet.
    pub state: CouponState,
}

impl CouponStatus {
    pub(crate) fn at(now: Timestamp, terms: &CouponTerms, issued: u64) -> Self {
        let state = match CouponState::of_window(now, terms.opens_at, terms.closes_at) {
            CouponState::Open if issued >= terms.quantity => CouponState::SoldOut,
            state => state,
        };
        Self { quantity: terms.quantity, issued, opens_at: terms.opens_at, closes_at: terms.closes_at, state }
    }

    /// How many are left.
    #[must_use]
    pub fn remaining(&self) -> u64 {
        self.quantity.saturating_sub(self.issued)
    }
}

/// What somebody who asks for a coupon now would meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CouponState {
    /// It opens later.
    Scheduled,
    /// It can be had.
    Open,
    /// It is open, and none is left.
    SoldOut,
    /// Its time is over.
    Closed,
}

impl CouponState {
    pub(crate) fn of_window(now: Timestamp, opens: Option<Timestamp>, closes: Option<Timestamp>) -> Self {
        if opens.is_some_and(|opens| now < opens) {
            CouponState::Scheduled
        } else if closes.is_some_and(|closes| now >= closes) {
            CouponState::Closed
        } else {
            CouponState::Open
        }
    }

    /// The word for it in the HTTP contract.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            CouponState::Scheduled => "scheduled",
            CouponState::Open => "open",
            CouponState::SoldOut => "sold-out",
            CouponState::Closed => "closed",
        }
    }
}

/// The answer to [`Store::coupon_open`](super::Store::coupon_open).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CouponOpen {
    /// The coupon is new.
    Created(CouponStatus),
    /// The coupon was there and has these terms now.
    Changed(CouponStatus),
    /// The quantity is below what is issued already; nothing has changed.
    BelowIssued {
        /// How many were issued.
        issued: u64,
    },
}

/// The answer to one user's wish for a coupon. A denial is an answer, not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Issue {
    /// The user has it now.
    Issued {
        /// The number of this grant: 1, 2, 3 …
        seq: u64,
        /// How many are left after it.
        remaining: u64,
    },
    /// The user had it before.
    AlreadyIssued {
        /// The number that it was given then.
        seq: u64,
    },
    /// None is left.
    SoldOut,
    /// It opens later.
    NotOpen {
        /// When.
        opens_at: Timestamp,
    },
    /// Its time is over.
    Closed,
    /// There is no coupon of that name.
    Unknown,
}

/// Refuses a batch that would keep a store busy for too long.
pub(crate) fn check_batch(users: &[Name]) -> Result<(), InvalidInput> {
    if users.len() > MAX_ISSUE_BATCH {
        let problem = format!("{} in one call; at most {MAX_ISSUE_BATCH} are allowed", users.len());
        return Err(InvalidInput::new("users", problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(opens_micros: u64, closes_micros: u64) -> Result<CouponTerms, InvalidInput> {
        let time = |micros| Some(Timestamp::from_micros(micros));
        CouponTerms::new(1)?.between(time(opens_micros), time(closes_micros))
    }

    #[test]
    fn terms_that_make_no_sense_cannot_be_made() {
        assert_eq!(CouponTerms::new(MAX_QUANTITY + 1).unwrap_err().field, "quantity");
        assert_eq!(between(5, 5).unwrap_err().field, "closes_at");
        assert_eq!(between(5, 4).unwrap_err().field, "closes_at");
        assert_eq!(between(0, 0).unwrap_err().field, "closes_at");
        assert_eq!(between(MAX_QUANTITY + 1, MAX_QUANTITY + 2).unwrap_err().field, "opens_at");
        assert!(between(4, 5).is_ok() && CouponTerms::new(0).is_ok());
    }

    #[test]
    fn what_opened_when_time_began_has_no_opening_time() {
        assert_eq!(between(0, 5).unwrap().opens_at, None);
    }

    #[test]
    fn a_window_is_open_from_its_first_moment_and_closed_from_its_last() {
        let (opens, closes) = (Timestamp::from_micros(10), Timestamp::from_micros(20));
        let state = |micros| {
            CouponState::of_window(Timestamp::from_micros(micros), Some(opens), Some(closes)).as_str()
        };
        assert_eq!([9, 10, 19, 20].map(state), ["scheduled", "open", "open", "closed"]);
    }
}
