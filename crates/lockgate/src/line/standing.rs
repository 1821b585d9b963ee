//! Where somebody stands, for people.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{Crowd, Ending, LineState, LineTerms, Standing, Token};

/// Where somebody stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whereabouts {
    /// The line is not open yet; the place will be drawn when it opens.
    Early {
        /// How many have come so far.
        waiting: u64,
    },
    /// In the line.
    Waiting {
        /// The next one to be admitted is 1.
        position: u64,
        /// How many are in the line.
        waiting: u64,
        /// How long it will take, by how fast the line has moved lately. `None`: it does not move.
        wait: Option<Duration>,
    },
    /// Admitted: it is your turn.
    Admitted(Admission),
    /// It is over. Whoever enters again has a new ticket.
    Over(Ending),
    /// There is no such ticket: it is forged, of another line, or was over long ago.
    Unknown,
}

/// Somebody's turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Admission {
    /// Who.
    pub user: Name,
    /// In which line.
    pub line: Name,
    /// Until when, by the store's clock.
    pub until: Timestamp,
    /// The id of every pass for this admission, however often it is renewed: what is bought with one of them is bought with all.
    pub pass_id: Token,
}

#[cfg(feature = "pass")]
impl Admission {
    /// What the pass for this admission says: sign it with [`PassKeys`](super::pass::PassKeys). `now` is when that is.
    #[must_use]
    pub const fn claims(&self, now: Timestamp) -> super::pass::PassClaims<'_> {
        let Self { user, line, until, pass_id } = self;
        super::pass::PassClaims { user, line, jti: *pass_id, until: *until, now }
    }
}

/// How long somebody at that position will wait.
pub(super) fn estimate(position: u64, crowd: &Crowd, terms: &LineTerms) -> Option<Duration> {
    if crowd.state != LineState::Running {
        return None;
    }
    let by_the_terms = || {
        let batches = position.div_ceil(u64::from(terms.batch));
        terms.every.checked_mul(u32::try_from(batches).ok()?)
    };
    match crowd.pace {
        None => by_the_terms(),
        Some(0) => None,
        Some(pace) => {
            let micros = u128::from(position) * 1_000_000_000_000 / u128::from(pace);
            Some(Duration::from_micros(u64::try_from(micros).ok()?))
        }
    }
}

impl Whereabouts {
    pub(super) fn of(
        standing: Standing,
        crowd: &Crowd,
        terms: &LineTerms,
        line: &Name,
        pass_id: impl FnOnce() -> Token,
    ) -> Self {
        match standing {
            Standing::Early => Self::Early { waiting: crowd.waiting },
            Standing::Waiting { position } => {
                let wait = estimate(position, crowd, terms);
                Self::Waiting { position, waiting: crowd.waiting, wait }
            }
            Standing::Admitted { user, until, .. } => {
                Self::Admitted(Admission { user, line: line.clone(), until, pass_id: pass_id() })
            }
            Standing::Over(ending) => Self::Over(ending),
            Standing::Unknown => Self::Unknown,
        }
    }

    /// Whether nothing will change any more by waiting.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Admitted(_) | Self::Over(_) | Self::Unknown)
    }
}
