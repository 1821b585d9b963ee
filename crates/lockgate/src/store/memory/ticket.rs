//! The operations on tickets of a line, in memory.

use super::line::{Attended, Hall, LineEvent, Step};
use crate::key::Name;
use crate::store::{Ending, LineState, Standing, TicketAt, Told};

pub(super) fn ticket_show(
    step: &mut Step<'_>,
    line: &Name,
    edition: u64,
    tickets: &[TicketAt],
) -> Option<Told<Standing>> {
    let mut attended = step.attend_edition(line, edition)?;
    let each = tickets.iter().map(|ticket| show(&mut attended, *ticket)).collect();
    Some(Told { crowd: attended.hall.crowd(), each })
}

fn show(attended: &mut Attended<'_>, ticket: TicketAt) -> Standing {
    attended.hall.see(ticket.place);
    match attended.hall.standing(ticket) {
        Standing::Admitted { is_shown: false, .. } => renew(attended, ticket),
        standing => standing,
    }
}

/// The time begins anew.
fn renew(attended: &mut Attended<'_>, ticket: TicketAt) -> Standing {
    let deadline = attended.hall.renewed_until(ticket.place);
    attended.happen(&LineEvent::Shown { place: ticket.place, deadline });
    attended.hall.standing(ticket)
}

pub(super) fn ticket_leave(
    step: &mut Step<'_>,
    line: &Name,
    edition: u64,
    ticket: TicketAt,
) -> Option<Standing> {
    let mut attended = step.attend_edition(line, edition)?;
    if can_end(attended.hall, ticket) {
        attended.happen(&LineEvent::Ended { place: ticket.place, ending: Ending::Left });
    }
    Some(attended.hall.standing(ticket))
}

/// While the places are drawn, those who came early stay: whoever draws has counted them.
fn can_end(hall: &Hall, ticket: TicketAt) -> bool {
    match hall.standing(ticket) {
        Standing::Early => hall.crowd().state == LineState::Early,
        standing => matches!(standing, Standing::Waiting { .. } | Standing::Admitted { .. }),
    }
}

pub(super) fn ticket_finish(
    step: &mut Step<'_>,
    line: &Name,
    edition: u64,
    ticket: TicketAt,
) -> Option<Standing> {
    let mut attended = step.attend_edition(line, edition)?;
    if let Standing::Admitted { .. } = attended.hall.standing(ticket) {
        attended.happen(&LineEvent::Ended { place: ticket.place, ending: Ending::Finished });
    }
    Some(attended.hall.standing(ticket))
}

pub(super) fn ticket_renew(
    step: &mut Step<'_>,
    line: &Name,
    edition: u64,
    ticket: TicketAt,
) -> Option<Standing> {
    let mut attended = step.attend_edition(line, edition)?;
    Some(match attended.hall.standing(ticket) {
        Standing::Admitted { .. } => renew(&mut attended, ticket),
        standing => standing,
    })
}
