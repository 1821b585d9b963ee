//! What a ticket looks like from outside.

use std::fmt;

/// A ticket, as it is handed out: whoever has it stands at that place. It cannot be guessed (128 bits), and it is good for its
/// own line alone.
///
/// Its text is 1 to 60 letters, digits and `-`, to be kept by whoever it was given to: in a cookie, in an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TicketId {
    pub(super) number: u64,
    pub(super) era: u32,
    pub(super) proof: u128,
}

impl TicketId {
    /// Reads what [`Display`](fmt::Display) wrote. Whether it is a ticket of a line, only that line can say.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, rest) = text.split_once('-')?;
        let (era, proof) = rest.split_once('-')?;
        let id = Self {
            number: number.parse().ok()?,
            era: era.parse().ok()?,
            proof: u128::from_str_radix(proof, 16).ok()?,
        };
        // One ticket, one text.
        (id.to_string() == text).then_some(id)
    }

    /// Which one this was to enter, from 0 on.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }
}

impl fmt::Display for TicketId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{:032x}", self.number, self.era, self.proof)
    }
}

impl fmt::Debug for TicketId {
    /// Whoever knows the ticket can use it, so logs get the number only.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketId({}-…)", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_has_one_text() {
        let id = TicketId { number: 123_456, era: 2, proof: 0xab };
        let text = id.to_string();
        assert_eq!(TicketId::parse(&text), Some(id));
        assert!(!format!("{id:?}").contains("ab"));
        let (shorter, upper) = (text.replacen("-0", "-", 1), text.to_uppercase());
        for wrong in [
            "",
            "-",
            "--",
            "1-1",
            &shorter,
            &upper,
            &format!("+{text}"),
            &format!("{text} "),
            &format!("0{text}"),
        ] {
            assert_eq!(TicketId::parse(wrong), None, "{wrong}");
        }
    }
}
