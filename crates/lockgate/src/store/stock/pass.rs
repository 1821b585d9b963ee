//! What a store is told of a pass, and what it keeps of one that was used.

use super::{HoldPlace, Issue, Purchase};
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{MAX_STAY, Token};

/// A pass that somebody shows with a wish. Whoever asks the store has verified it: the store only knows who may use it where,
/// and that each admission is used once per campaign.
///
/// Only a grant uses it up (something issued, bought or put aside); whoever is denied may show it again. It stays used
/// when the grant is revoked, or the hold cancelled or over: another try takes another turn in the line. It is remembered
/// for [`MAX_STAY`] after its end, because a renewed pass is the same admission with a later end. (That is by the store's clock; a line
/// that nobody served in between counts its own time, and could renew a pass that is forgotten by then.)
///
/// A campaign that demands no pass does not look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassUse {
    /// Of which line.
    pub line: Name,
    /// Whose.
    pub user: Name,
    /// Which admission.
    pub jti: Token,
    /// When it is over.
    pub expires_at: Timestamp,
}

impl PassUse {
    /// What is kept of it.
    pub(crate) fn used(&self) -> UsedPass {
        UsedPass { jti: self.jti, expires_at: self.expires_at }
    }
}

/// A pass that was used up for a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "durable", derive(serde::Serialize, serde::Deserialize))]
pub struct UsedPass {
    /// Which admission.
    pub jti: Token,
    /// When it was over, or will be.
    pub expires_at: Timestamp,
}

impl UsedPass {
    /// When nobody can have a pass of that admission any more.
    pub(crate) fn forget_at(&self) -> Timestamp {
        self.expires_at + MAX_STAY
    }
}

/// Why a pass does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PassDenial {
    Required,
    Invalid,
    Expired,
    Used,
}

impl PassDenial {
    /// What speaks against this pass where `line` demands one of `user`, but that it was used. In the order in which the
    /// reasons count.
    pub(crate) fn of(pass: Option<&PassUse>, line: &Name, user: &Name, now: Timestamp) -> Option<Self> {
        match pass {
            None => Some(PassDenial::Required),
            Some(pass) if pass.line != *line || pass.user != *user => Some(PassDenial::Invalid),
            Some(pass) if now >= pass.expires_at => Some(PassDenial::Expired),
            Some(_) => None,
        }
    }

    /// The denial of that word in the answers of the scripts.
    #[cfg(feature = "redis")]
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "pass-required" => PassDenial::Required,
            "pass-invalid" => PassDenial::Invalid,
            "pass-expired" => PassDenial::Expired,
            "pass-used" => PassDenial::Used,
            _ => return None,
        })
    }
}

/// The same denial as the answer to a wish.
macro_rules! answers {
    ($($answer:ident)+) => {
        $(
            impl From<PassDenial> for $answer {
                fn from(denial: PassDenial) -> Self {
                    match denial {
                        PassDenial::Required => $answer::PassRequired,
                        PassDenial::Invalid => $answer::PassInvalid,
                        PassDenial::Expired => $answer::PassExpired,
                        PassDenial::Used => $answer::PassUsed,
                    }
                }
            }
        )+
    };
}

answers! { Issue Purchase HoldPlace }
