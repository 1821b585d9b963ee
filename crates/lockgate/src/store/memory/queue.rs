//! Who waits for something, in which order, and what each of them wants.

use std::collections::{BTreeMap, HashMap};

use crate::store::Token;

/// Who waits, in the order of their tickets.
#[derive(Debug)]
pub(super) struct Queue<W> {
    by_ticket: BTreeMap<i64, (Token, W)>,
    by_token: HashMap<Token, i64>,
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self { by_ticket: BTreeMap::new(), by_token: HashMap::new() }
    }
}

impl<W: Copy> Queue<W> {
    pub(in crate::store::memory) fn is_empty(&self) -> bool {
        self.by_ticket.is_empty()
    }

    pub(in crate::store::memory) fn len(&self) -> u64 {
        u64::try_from(self.by_ticket.len()).unwrap_or(u64::MAX)
    }

    pub(in crate::store::memory) fn contains(&self, token: Token) -> bool {
        self.by_token.contains_key(&token)
    }

    /// Lets `token` in, unless it is in: behind everybody, or before them. Says how many are ahead of it.
    pub(in crate::store::memory) fn join(&mut self, token: Token, wish: W, is_at_head: bool) -> u64 {
        let ticket = *self.by_token.entry(token).or_insert_with(|| match is_at_head {
            true => self.by_ticket.first_key_value().map_or(0, |(first, _)| first - 1),
            false => self.by_ticket.last_key_value().map_or(0, |(last, _)| last + 1),
        });
        self.by_ticket.entry(ticket).or_insert((token, wish));
        self.ahead_of(ticket)
    }

    pub(in crate::store::memory) fn leave(&mut self, token: Token) -> bool {
        let ticket = self.by_token.remove(&token);
        ticket.is_some_and(|ticket| self.by_ticket.remove(&ticket).is_some())
    }

    pub(in crate::store::memory) fn first(&self) -> Option<(Token, W)> {
        self.by_ticket.first_key_value().map(|(_, waiter)| *waiter)
    }

    pub(in crate::store::memory) fn pop_first(&mut self) -> Option<(Token, W)> {
        let (_, (token, wish)) = self.by_ticket.pop_first()?;
        self.by_token.remove(&token);
        Some((token, wish))
    }

    /// All who wait, the first first.
    pub(in crate::store::memory) fn iter(&self) -> impl Iterator<Item = (Token, W)> {
        self.by_ticket.values().copied()
    }

    fn ahead_of(&self, ticket: i64) -> u64 {
        let is_last = self.by_ticket.last_key_value().is_some_and(|(last, _)| *last == ticket);
        let ahead = if is_last { self.by_ticket.len() - 1 } else { self.by_ticket.range(..ticket).count() };
        u64::try_from(ahead).unwrap_or(u64::MAX)
    }
}
