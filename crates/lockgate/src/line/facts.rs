//! What a process must know of a line to tell its tickets from forged ones and numbers from places. It changes rarely: see
//! [`LineStatus::edition`].

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::draw::Permutation;
use super::ticket_id::TicketId;
use crate::key::Name;
use crate::store::{LineEra, LineSecret, LineStatus, LineTerms, TicketAt, Token};

/// See the [module](self).
pub(super) struct Facts {
    pub(super) edition: u64,
    pub(super) terms: LineTerms,
    eras: Vec<LineEra>,
    permutation: Option<Permutation>,
    tickets: Hmac<Sha256>,
    passes: Hmac<Sha256>,
}

impl Facts {
    pub(super) fn new(line: &Name, status: &LineStatus) -> Self {
        let secret = &status.secrets.tickets;
        Self {
            edition: status.edition,
            terms: status.terms,
            eras: status.eras.clone(),
            permutation: status.drawn.as_ref().map(Permutation::of),
            tickets: keyed("lockgate ticket v1", secret, line),
            passes: keyed("lockgate pass v1", secret, line),
        }
    }

    pub(super) fn at(&self, number: u64) -> TicketAt {
        let place = self.permutation.map_or(number, |permutation| permutation.place_of(number));
        TicketAt { number, place }
    }

    fn era_of(&self, number: u64) -> u32 {
        let begun = self.eras.iter().rev().find(|era| era.from <= number);
        begun.or(self.eras.first()).map_or(0, |era| era.era)
    }

    pub(super) fn id_of(&self, number: u64) -> TicketId {
        let era = self.era_of(number);
        TicketId { number, era, proof: truncated(&self.tickets, number, era) }
    }

    /// The number of that ticket, if it is one of this line's. One of an era that has lost it is not.
    pub(super) fn number_of(&self, id: &TicketId) -> Option<u64> {
        let mac = with(&self.tickets, id.number, id.era);
        let is_ours = mac.verify_truncated_left(&id.proof.to_be_bytes()).is_ok();
        (is_ours && id.era == self.era_of(id.number)).then_some(id.number)
    }

    /// The same for every pass of one admission, however often it is renewed: so that it can be used once.
    pub(super) fn pass_id_of(&self, number: u64) -> Token {
        Token::from_bits(truncated(&self.passes, number, self.era_of(number)))
    }
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
fn keyed(purpose: &str, secret: &LineSecret, line: &Name) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("a key of 32 bytes is one");
    mac.update(purpose.as_bytes());
    mac.update(&(line.as_str().len() as u64).to_be_bytes());
    mac.update(line.as_str().as_bytes());
    mac
}

fn with(mac: &Hmac<Sha256>, number: u64, era: u32) -> Hmac<Sha256> {
    let mut mac = mac.clone();
    mac.update(&number.to_be_bytes());
    mac.update(&era.to_be_bytes());
    mac
}

fn truncated(mac: &Hmac<Sha256>, number: u64, era: u32) -> u128 {
    let bytes = with(mac, number, era).finalize().into_bytes();
    bytes[..16].iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::memory::MemoryStore;
    use crate::store::{LineSecrets, Store as _};

    /// What is known of a line whose numbers belong to these eras.
    async fn facts(eras: &[(u32, u64)]) -> Facts {
        let store = MemoryStore::new(crate::clock::Clock::fake());
        let line = Name::new("line", "concert").unwrap();
        let secrets = LineSecrets { tickets: LineSecret([1; 32]), draw: LineSecret([2; 32]) };
        let terms = LineTerms::new(1, Duration::from_secs(1)).unwrap();
        store.line_open(&line, &terms, &secrets).await.unwrap();
        let mut status = store.line_read(&line).await.unwrap().unwrap();
        status.eras = eras.iter().map(|(era, from)| LineEra { era: *era, from: *from }).collect();
        Facts::new(&line, &status)
    }

    /// The server has forgotten the numbers from 90 on, and gives them to others.
    #[tokio::test]
    async fn a_number_that_is_given_twice_makes_two_tickets() {
        let (before, after) = (facts(&[(1, 0)]).await, facts(&[(1, 0), (7, 90)]).await);
        let (kept, lost) = (before.id_of(89), before.id_of(90));
        assert_eq!((before.number_of(&kept), before.number_of(&lost)), (Some(89), Some(90)));
        assert_eq!((after.number_of(&kept), after.number_of(&lost)), (Some(89), None));
        assert_eq!(after.id_of(89), kept);
        assert_ne!(after.id_of(90), lost);
        assert_ne!(after.pass_id_of(90), before.pass_id_of(90));
        assert_eq!(before.number_of(&after.id_of(90)), None);
    }
}
