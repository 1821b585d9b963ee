//! The proof that the order of those who came early is the one that was committed to.

use super::draw::{ArrivalsHash, Hash256, Permutation, commitment, leaf, seed};
use crate::error::StoreError;
use crate::key::Name;
use crate::store::{LineDrawn, LineSecret, Store};

/// How many arrivals are read at once.
const AT_ONCE: usize = 4_096;

/// All that is needed to compute the order again: see [`draw`](super::draw). The people are in it as hashes, so that it can be
/// published; whoever knows an id finds its place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Audit {
    /// The line's name.
    pub line: Name,
    /// What was published before.
    pub commitment: Hash256,
    /// What it was the commitment of.
    pub secret: Hash256,
    /// The hash of the list of arrivals.
    pub arrivals_hash: Hash256,
    /// By what the order was computed.
    pub seed: Hash256,
    /// Who came, in which order: [`leaf`] of each.
    pub arrivals: Vec<Hash256>,
}

/// What is wrong with an [`Audit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refuted {
    /// It is not the commitment that was published before.
    #[error("this is not the commitment that was published before the line opened")]
    OtherCommitment,
    /// The secret is not the one that was committed to.
    #[error("the secret is not the one that was committed to")]
    Secret,
    /// The list of arrivals has another hash.
    #[error("the list of arrivals is not the one whose hash was published")]
    Arrivals,
    /// The seed does not follow from secret and arrivals.
    #[error("the seed does not follow from the secret and the list of arrivals")]
    Seed,
}

impl Audit {
    /// An audit of these parts, as they were published.
    #[must_use]
    pub const fn new(
        line: Name,
        commitment: Hash256,
        secret: Hash256,
        arrivals_hash: Hash256,
        seed: Hash256,
        arrivals: Vec<Hash256>,
    ) -> Self {
        Self { line, commitment, secret, arrivals_hash, seed, arrivals }
    }

    /// Computes everything again. `published` is the commitment as it was known before the line opened: without it, the audit only
    /// says that it agrees with itself. The answer is the order: which arrival is admitted first, second, …
    ///
    /// # Errors
    ///
    /// What does not agree.
    pub fn verify(&self, published: Option<&Hash256>) -> Result<Vec<u64>, Refuted> {
        let Self { line, arrivals, .. } = self;
        if published.is_some_and(|published| *published != self.commitment) {
            return Err(Refuted::OtherCommitment);
        }
        let secret = LineSecret(self.secret.0);
        if commitment(line, &secret) != self.commitment {
            return Err(Refuted::Secret);
        }
        let mut hash = ArrivalsHash::new(line);
        arrivals.iter().for_each(|leaf| hash.add(leaf));
        if hash.finish() != self.arrivals_hash {
            return Err(Refuted::Arrivals);
        }
        if seed(line, &secret, &self.arrivals_hash) != self.seed {
            return Err(Refuted::Seed);
        }
        Ok(self.order())
    }

    fn permutation(&self) -> Permutation {
        let early = self.arrivals.len() as u64;
        Permutation::of(&LineDrawn { early, arrivals_hash: self.arrivals_hash.0, seed: self.seed.0 })
    }

    fn order(&self) -> Vec<u64> {
        let permutation = self.permutation();
        let mut order = vec![0; self.arrivals.len()];
        for number in 0..self.arrivals.len() as u64 {
            if let Some(at) =
                usize::try_from(permutation.place_of(number)).ok().and_then(|at| order.get_mut(at))
            {
                *at = number;
            }
        }
        order
    }

    /// Which one that user was to come, and which place was drawn for it, both from 0 on; `None` when the user did not come early.
    /// Whoever left and came back is in the list once for each time; the last one counts.
    #[must_use]
    pub fn find(&self, user: &Name) -> Option<(u64, u64)> {
        let leaf = leaf(&self.line, user);
        let number = self.arrivals.iter().rposition(|arrival| *arrival == leaf)? as u64;
        Some((number, self.permutation().place_of(number)))
    }
}

pub(super) async fn read(store: &dyn Store, line: &Name) -> Result<Option<Audit>, StoreError> {
    let Some(status) = store.line_read(line).await? else { return Ok(None) };
    let Some(drawn) = status.drawn else { return Ok(None) };
    let mut arrivals = Vec::new();
    while (arrivals.len() as u64) < drawn.early {
        match store.line_arrivals(line, arrivals.len() as u64, AT_ONCE).await? {
            Some(more) if !more.people.is_empty() => {
                arrivals.extend(more.people.iter().map(|arrival| leaf(line, &arrival.user)));
            }
            _ => return Ok(None),
        }
        tokio::task::yield_now().await;
    }
    let secret = status.secrets.draw;
    Ok(Some(Audit {
        line: line.clone(),
        commitment: commitment(line, &secret),
        secret: Hash256(secret.0),
        arrivals_hash: Hash256(drawn.arrivals_hash),
        seed: Hash256(drawn.seed),
        arrivals,
    }))
}
