//! A ticket in somebody's hand.

use std::sync::Arc;

use super::booth::{Booth, Looks};
use super::drawing;
use super::facts::Facts;
use super::standing::{Admission, Whereabouts};
use super::ticket_id::TicketId;
use super::view::Sight;
use super::watchers::{KnownPlace, Watching};
use crate::error::StoreError;
use crate::store::{Crowd, LineState, Standing, TicketAt};

/// A ticket of a line. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ticket {
    booth: Arc<Booth>,
    id: TicketId,
}

impl Ticket {
    pub(super) fn new(booth: Arc<Booth>, id: TicketId) -> Self {
        Self { booth, id }
    }

    /// What to give to whoever it belongs to.
    #[must_use]
    pub const fn id(&self) -> &TicketId {
        &self.id
    }

    /// Where its holder stands. Whoever shows a ticket is there, and is not passed over; if it is their turn, their time begins.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Showing it again is harmless.
    pub async fn show(&self) -> Result<Whereabouts, StoreError> {
        self.booth.wake();
        let shown = self.act(Act::Show).await?;
        Ok(shown.map_or(Whereabouts::Unknown, |(_, whereabouts)| whereabouts))
    }

    /// Where its holder stands, as those hear it who watch: it was so at most two [ticks](crate::config::Config::line_tick) ago,
    /// and what was done in this process since is in it. For those who ask every few seconds, however many: the store is
    /// asked once per tick for all of them, and only of those who do not wait any more is each asked about.
    ///
    /// Whoever glances at least twice within the grace period is there, and is not passed over.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Glancing again is harmless.
    pub async fn glance(&self) -> Result<Whereabouts, StoreError> {
        match self.seen_at_a_glance() {
            Some(whereabouts) => Ok(whereabouts),
            None => self.show().await,
        }
    }

    /// `None`: the ticket has to be shown.
    fn seen_at_a_glance(&self) -> Option<Whereabouts> {
        let booth = &self.booth;
        if booth.shared.store.answers_at_once() {
            return None;
        }
        if booth.glances.begin() {
            booth.wake();
        }
        let facts = booth.known_now();
        let facts = facts.as_ref()?;
        let place = facts.at(facts.number_of(&self.id)?).place;
        let at = KnownPlace { edition: facts.edition, place };
        let Some(sight) = booth.look_if_fresh(facts, |view| view.look(at)) else {
            booth.look.notify_one();
            return None;
        };
        let Sight::At(whereabouts) = sight else { return None };
        let is_seen = facts.terms.grace.is_none() || booth.glances.note(facts.edition, place);
        is_seen.then_some(whereabouts)
    }

    /// Leaves the line, or ends the admission: the next may come.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; leaving again is harmless.
    pub async fn leave(&self) -> Result<Whereabouts, StoreError> {
        loop {
            let left = self.act_alone(Act::Leave).await?;
            // Nobody leaves while the places are drawn; that takes a moment, and whoever waits for it can help.
            if !matches!(left, Whereabouts::Early { .. }) {
                return Ok(left);
            }
            drawing::draw(&self.booth).await?;
            tokio::task::yield_now().await;
        }
    }

    /// Ends the admission early: the next may come. Whoever is not admitted stays in the line.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; finishing again is harmless.
    pub async fn finish(&self) -> Result<Whereabouts, StoreError> {
        self.act_alone(Act::Finish).await
    }

    /// Lets the time of the admission begin anew, up to a day in all. Whoever is not admitted is told where they stand.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; renewing again is harmless.
    pub async fn renew(&self) -> Result<Whereabouts, StoreError> {
        self.act_alone(Act::Renew).await
    }

    /// Begins to watch: see [`Watch`].
    #[must_use]
    pub fn watch(&self) -> Watch {
        Watch { ticket: self.clone(), watching: None, last: None }
    }

    /// Waits for the turn, and is seen to be there meanwhile; `Err` when it does not come, and why.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future keeps the place, for the grace period.
    pub async fn admitted(&self) -> Result<Result<Admission, Whereabouts>, StoreError> {
        let mut watch = self.watch();
        loop {
            match watch.next().await? {
                Some(Whereabouts::Admitted(admission)) => return Ok(Ok(admission)),
                Some(elsewhere) if elsewhere.is_final() => return Ok(Err(elsewhere)),
                Some(_) => {}
                None => return Ok(Err(Whereabouts::Unknown)),
            }
        }
    }

    async fn act_alone(&self, act: Act) -> Result<Whereabouts, StoreError> {
        let acted = self.act(act).await?;
        // A place is free, or somebody behind has moved up.
        self.booth.has_changed();
        match acted {
            // Nothing has changed, and how the line is, only showing the ticket tells.
            Some((_, whereabouts)) if !whereabouts.is_final() => self.show().await,
            Some((_, whereabouts)) => Ok(whereabouts),
            None => Ok(Whereabouts::Unknown),
        }
    }

    /// `None`: there is no such line, or it is no ticket of it.
    async fn act(&self, act: Act) -> Result<Option<(KnownPlace, Whereabouts)>, StoreError> {
        let mut looks = Looks::default();
        while let Some(facts) = looks.next(&self.booth).await? {
            let Some(number) = facts.number_of(&self.id) else { return Ok(None) };
            let ticket = facts.at(number);
            if let Some((crowd, standing)) = self.ask(act, &facts, ticket).await? {
                let pass_id = || facts.pass_id_of(number);
                let whereabouts = Whereabouts::of(standing, &crowd, &facts.terms, &self.booth.line, pass_id);
                let at = KnownPlace { edition: facts.edition, place: ticket.place };
                return Ok(Some((at, whereabouts)));
            }
        }
        Ok(None)
    }

    async fn ask(
        &self,
        act: Act,
        facts: &Facts,
        ticket: TicketAt,
    ) -> Result<Option<(Crowd, Standing)>, StoreError> {
        let Booth { line, shared, .. } = &*self.booth;
        let standing = match act {
            Act::Show => return self.booth.show(facts, ticket).await,
            Act::Leave => shared.store.ticket_leave(line, facts.edition, ticket).await?,
            Act::Finish => shared.store.ticket_finish(line, facts.edition, ticket).await?,
            Act::Renew => shared.store.ticket_renew(line, facts.edition, ticket).await?,
        };
        // A call about one ticket says nothing of the line; what is made of it then is not told.
        let crowd = Crowd { state: LineState::Paused, waiting: 0, active: 0, pace: None };
        Ok(standing.map(|standing| (crowd, standing)))
    }
}

/// What somebody does with a ticket.
#[derive(Clone, Copy, Debug)]
enum Act {
    Show,
    Leave,
    Finish,
    Renew,
}

/// Tells where somebody stands, whenever it changes, until it is final. As long as it lives and is asked now and then, its ticket
/// is seen.
///
/// However many watch in one process, the store is asked once per [tick](crate::config::Config::line_tick).
#[derive(Debug)]
pub struct Watch {
    ticket: Ticket,
    watching: Option<Watching>,
    last: Option<Whereabouts>,
}

impl Watch {
    /// Where the holder stands: at once the first time, then when it changes. `None` after the end.
    ///
    /// # Errors
    ///
    /// When the store did not answer; asking again goes on.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: what was missed is told the next time.
    pub async fn next(&mut self) -> Result<Option<Whereabouts>, StoreError> {
        if self.last.as_ref().is_some_and(Whereabouts::is_final) {
            return Ok(None);
        }
        loop {
            let now = match self.seen_in_view() {
                Some(whereabouts) => whereabouts,
                None => self.show().await?,
            };
            if self.is_news(&now) {
                if now.is_final() {
                    self.watching = None;
                }
                self.last = Some(now.clone());
                return Ok(Some(now));
            }
            if self.ticket.booth.ends().is_cancelled() {
                return Err(StoreError::Unavailable("the gate was shut down".into()));
            }
            self.ticket.booth.wake();
            if let Some(watching) = &self.watching {
                watching.rung().await;
            }
        }
    }

    /// Nobody moves back: a view that says so is older than what was told last.
    fn is_news(&self, now: &Whereabouts) -> bool {
        match (&self.last, now) {
            (Some(Whereabouts::Waiting { position: before, .. }), Whereabouts::Waiting { position, .. })
                if position > before =>
            {
                false
            }
            (last, now) => last.as_ref() != Some(now),
        }
    }

    /// What the last tick says of this place; `None` when the ticket has to be shown. No secret is used and nothing is drawn
    /// again: ten thousand watchers do this at every tick.
    fn seen_in_view(&mut self) -> Option<Whereabouts> {
        let view = self.ticket.booth.view()?;
        let at = self.watching.as_ref()?.at();
        match view.look(at) {
            Sight::At(whereabouts) => Some(whereabouts),
            Sight::Nothing => self.last.clone(),
            Sight::Passed => None,
        }
    }

    async fn show(&mut self) -> Result<Whereabouts, StoreError> {
        let booth = Arc::clone(&self.ticket.booth);
        let now = booth.shared.clock.monotonic();
        let Some((at, whereabouts)) = self.ticket.act(Act::Show).await? else {
            return Ok(Whereabouts::Unknown);
        };
        if !whereabouts.is_final() && self.watching.as_ref().map(Watching::at) != Some(at) {
            self.watching = Some(Watching::begin(&booth, at, now));
        }
        booth.wake();
        Ok(whereabouts)
    }
}
