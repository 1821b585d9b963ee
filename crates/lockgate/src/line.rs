//! Lines: who is *next*?
//!
//! **Promise:** first come, first served. Whoever enters gets a place behind all who came before, once, and keeps it: entering
//! again finds the same place. The line admits so many every so often, and never more than so many at once, whichever process
//! asks it to go on, and whether one of them dies or two of them do it at the same time. Nobody is lost and nobody is admitted
//! twice, because one step of the store moves people from waiting to admitted.
//!
//! What goes wrong without it, with a sorted set by the time of arrival:
//!
//! ```text
//! 12:00:00.001  alice enters on a server whose clock is a second ahead
//! 12:00:00.500  bob enters, and stands before her
//! 12:00:03.000  alice asks again, and stands behind everybody
//! 12:00:05.000  a server takes the first hundred out of the set …
//! 12:00:05.001  … and dies before it has let them in: they are nowhere
//! ```
//!
//! **Who is not there does not hold up the others.** Whoever has not been seen for the grace period when their place comes to the
//! head is passed over; whoever is admitted and does not come within it is a no-show, and the next is admitted. Showing the
//! ticket and watching both count as being there. Time counts only while the line is served: see [`LineTerms::longest_step`].
//!
//! **Early arrivals** may be put in a fair order when the line opens, which anybody can verify: see [`draw`].
//!
//! ```
//! use std::time::Duration;
//! use lockgate::{Gate, line::{Entry, LineTerms, Whereabouts}};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gate = Gate::open("memory").await?;
//! let line = gate.line("concert")?;
//! // A hundred every second, at most two thousand in the shop at once, five minutes each.
//! let terms = LineTerms::new(100, Duration::from_secs(1))?.max_active(2_000)?;
//! line.open(&terms).await?;
//!
//! let Entry::In { ticket, .. } = line.enter("alice").await? else { panic!("it is open") };
//! let admission = ticket.admitted().await?.expect("the first one is admitted at once");
//! assert_eq!(admission.user.as_str(), "alice");
//! ticket.finish().await?;
//! # Ok(())
//! # }
//! ```

mod audit;
mod booth;
pub mod draw;
mod drawing;
mod facts;
mod glances;
mod lines;
mod metrics;
mod operation;
#[cfg(feature = "pass")]
pub mod pass;
mod standing;
mod ticker;
mod ticket;
mod ticket_id;
mod view;
mod watchers;

use std::sync::Arc;

pub use self::audit::{Audit, Refuted};
use self::booth::{Booth, Looks};
use self::facts::Facts;
pub(crate) use self::lines::Lines;
pub use self::standing::{Admission, Whereabouts};
pub use self::ticket::{Ticket, Watch};
pub use self::ticket_id::TicketId;
use crate::clock::Timestamp;
use crate::error::StoreError;
use crate::key::Name;
use crate::line::draw::{Hash256, commitment};

pub use crate::store::{
    Crowd, Ending, LineAdmit, LineChange, LineDrawn, LineOpen, LineState, LineStatus, LineTerms,
    LineTermsParts,
};
use crate::store::{Enter, EnterWish, LineSecret, LineSecrets, Standing, Store, Token};

/// A line. Made by [`Gate::line`](crate::Gate::line). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Line {
    booth: Arc<Booth>,
}

/// What came of entering a line. A denial is an answer, not an error.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Entry {
    /// The user is in the line.
    In {
        /// With this ticket: the same whenever the user enters, until it is over.
        ticket: Ticket,
        /// Whether the user was not in the line before.
        is_new: bool,
        /// Where the user stands.
        whereabouts: Whereabouts,
    },
    /// It opens later.
    NotOpen {
        /// When.
        opens_at: Timestamp,
    },
    /// As many have come early as may: come back when it is open.
    Full,
    /// It is over.
    Closed,
    /// There is no line of that name.
    Unknown,
}

impl Line {
    pub(crate) fn new(lines: &Lines, name: Name) -> Self {
        Self { booth: lines.booth(name) }
    }

    fn store(&self) -> &dyn Store {
        self.booth.shared.store.as_ref()
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.booth.line
    }

    /// Creates it or replaces its terms, at any time: a new rate holds from the next batch on. Whether it is paused or closed
    /// stays. When it opens cannot be changed after it has opened.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; opening again with the same terms is harmless.
    pub async fn open(&self, terms: &LineTerms) -> Result<LineOpen, StoreError> {
        let secrets = LineSecrets { tickets: LineSecret::random(), draw: LineSecret::random() };
        let opened = self.store().line_open(self.name(), terms, &secrets).await?;
        // So that estimates and timers go by the new terms.
        self.booth.forget_facts();
        self.booth.has_changed();
        Ok(opened)
    }

    /// Admits nobody until it is resumed. People may enter. How it is then, or `None` when there is no such line.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; pausing again is harmless.
    pub async fn pause(&self) -> Result<Option<LineState>, StoreError> {
        self.change(LineChange::Pause).await
    }

    /// Goes on after a pause. How it is then, or `None` when there is no such line.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; resuming again is harmless.
    pub async fn resume(&self) -> Result<Option<LineState>, StoreError> {
        self.change(LineChange::Resume).await
    }

    /// Nobody enters any more and nobody is admitted any more, for ever; those who are admitted stay until their time is over.
    /// How it is then, or `None` when there is no such line.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; closing again is harmless.
    pub async fn close(&self) -> Result<Option<LineState>, StoreError> {
        self.change(LineChange::Close).await
    }

    async fn change(&self, change: LineChange) -> Result<Option<LineState>, StoreError> {
        let state = self.store().line_change(self.name(), change).await?;
        self.booth.has_changed();
        Ok(state)
    }

    /// Admits so many of those who wait, beyond the rate and also while it is paused, but never more than may be in at once.
    /// `None` when there is no such line.
    ///
    /// # Errors
    ///
    /// When the count is not 1 to a million, or the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown, and doing it again would admit more: use [`Line::admit_as`] for that.
    pub async fn admit(&self, count: u32) -> Result<Option<LineAdmit>, StoreError> {
        self.admit_as(count, Token::random()).await
    }

    /// The same under a token of your own, so that asking again after a lost answer admits nobody twice.
    ///
    /// # Errors
    ///
    /// As [`Line::admit`].
    ///
    /// # Cancel safety
    ///
    /// Asking again with the same token is harmless.
    pub async fn admit_as(&self, count: u32, request: Token) -> Result<Option<LineAdmit>, StoreError> {
        let noted = self.store().line_admit(self.name(), count, &request).await?;
        self.booth.has_changed();
        Ok(noted)
    }

    /// How it stands, or `None` when there is no such line.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn status(&self) -> Result<Option<LineStatus>, StoreError> {
        self.store().line_read(self.name()).await
    }

    /// Removes a line that is closed, with everybody in it: whether there is none now.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown; forgetting again is harmless.
    pub async fn forget(&self) -> Result<bool, StoreError> {
        let is_gone = self.store().line_forget(self.name()).await?;
        self.booth.forget_facts();
        Ok(is_gone)
    }

    /// Lets `user` in, behind all who are in it. A user who is in it already keeps the place, and the ticket.
    ///
    /// # Errors
    ///
    /// When the user's id is empty or longer than 16 KiB, or when the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the outcome unknown, but nothing is lost: entering again finds the same place.
    pub async fn enter(&self, user: impl AsRef<str>) -> Result<Entry, StoreError> {
        let user = Name::new("user", user)?;
        let booth = &self.booth;
        let mut looks = Looks::default();
        let (facts, crowd, entered) = loop {
            let Some(facts) = looks.next(booth).await? else { return Ok(Entry::Unknown) };
            if let Some((crowd, entered)) = enter_as_known(booth, &facts, &user).await? {
                break (facts, crowd, entered);
            }
        };
        booth.wake();
        Ok(match entered {
            Enter::In { number, is_new, standing } => {
                // Where nobody waited, nobody looks until there is something to do.
                if is_new && booth.view().is_none_or(|view| view.crowd.waiting == 0) {
                    booth.look.notify_one();
                }
                let ticket = Ticket::new(Arc::clone(booth), facts.id_of(number));
                let pass_id = || facts.pass_id_of(number);
                let whereabouts = match standing {
                    // Whoever comes back when it is their turn is there: from now on their time counts.
                    Standing::Admitted { is_shown: false, .. } => ticket.show().await?,
                    standing => Whereabouts::of(standing, &crowd, &facts.terms, self.name(), pass_id),
                };
                Entry::In { ticket, is_new, whereabouts }
            }
            Enter::NotOpen { opens_at } => Entry::NotOpen { opens_at },
            Enter::Full => Entry::Full,
            Enter::Closed => Entry::Closed,
            Enter::Drawn { number } => {
                return Err(StoreError::UnknownOutcome(format!(
                    "the line does not know the place of number {number}"
                )));
            }
        })
    }

    /// The ticket of that id. Nothing is asked: whether it is one, showing it tells.
    #[must_use]
    pub fn ticket(&self, id: TicketId) -> Ticket {
        Ticket::new(Arc::clone(&self.booth), id)
    }

    /// What to publish before anybody comes, if there is a pre-queue: see [`draw`]. `None`: there is none.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn commitment(&self) -> Result<Option<Hash256>, StoreError> {
        let status = self.status().await?.filter(|status| status.terms.prequeue);
        Ok(status.map(|status| commitment(self.name(), &status.secrets.draw)))
    }

    /// What to publish when the order of those who came early is drawn, so that anybody can verify it. `None`: it is not, or they
    /// are forgotten.
    ///
    /// # Errors
    ///
    /// When the store did not answer.
    ///
    /// # Cancel safety
    ///
    /// Reads only.
    pub async fn audit(&self) -> Result<Option<Audit>, StoreError> {
        audit::read(self.store(), self.name()).await
    }
}

/// Lets the user in, if the line is as it is known. The place of somebody who was drawn is for us to compute.
async fn enter_as_known(
    booth: &Booth,
    facts: &Facts,
    user: &Name,
) -> Result<Option<(Crowd, Enter)>, StoreError> {
    match booth.enter(facts, EnterWish { user: user.clone(), known: None }).await? {
        Some((_, Enter::Drawn { number })) => {
            booth.enter(facts, EnterWish { user: user.clone(), known: Some(facts.at(number)) }).await
        }
        said => Ok(said),
    }
}
