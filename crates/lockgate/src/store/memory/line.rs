//! The operations on lines, in memory; those on tickets are in [`super::ticket`].

mod admission;
mod event;
mod gaps;
mod hall;
mod pace;
#[cfg(feature = "durable")]
mod snapshot;

use std::collections::BTreeMap;
use std::ops::Bound;

pub(in crate::store::memory) use self::event::LineEvent;
pub(in crate::store::memory) use self::hall::{Hall, Switch};
use super::journal::Journal;
use crate::clock::Timestamp;
use crate::key::Name;
use crate::store::{
    Arrival, Arrivals, Draw, Ending, Enter, EnterWish, LineAdmit, LineChange, LineDraw, LineOpen,
    LineSecrets, LineState, LineStatus, LineTerms, LineTick, MAX_EARLY, Standing, Tick, TickDone, TicketAt,
    Token, Told,
};

/// How many arrivals one call tells of at the most.
const MAX_ARRIVALS: usize = 4_096;

/// All lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    halls: BTreeMap<Name, Hall>,
    /// The highest edition that any of them ever had.
    last_edition: u64,
}

/// What one step on a line works with.
pub(super) struct Step<'a> {
    pub(in crate::store::memory) lines: &'a mut Lines,
    pub(in crate::store::memory) journal: &'a mut Journal,
    pub(in crate::store::memory) now: Timestamp,
}

/// A line, and where its changes are written.
pub(in crate::store::memory) struct Attended<'a> {
    name: &'a Name,
    pub(in crate::store::memory) hall: &'a mut Hall,
    journal: &'a mut Journal,
}

impl Lines {
    /// Lets something happen that was written.
    #[cfg(feature = "durable")]
    pub(in crate::store::memory) fn replay(
        &mut self,
        line: &Name,
        at_ms: u64,
        event: &LineEvent,
    ) -> Result<(), String> {
        if let LineEvent::Created { terms, secrets, edition } = event {
            self.halls.insert(line.clone(), Hall::new(*terms, *secrets, *edition));
        }
        if let LineEvent::Snapshot { hall } = event {
            self.halls.insert(line.clone(), hall.restore());
        }
        let Some(hall) = self.halls.get_mut(line) else {
            return Err(format!("the line {line:?} goes on without a beginning"));
        };
        if at_ms < hall.time.now_ms {
            return Err(format!("the line {line:?} goes back in time"));
        }
        hall.time.now_ms = at_ms;
        hall.apply(event);
        self.last_edition = self.last_edition.max(hall.edition);
        Ok(())
    }

    /// Its time stood still, so everybody who was there counts as seen.
    #[cfg(feature = "durable")]
    pub(in crate::store::memory) fn finish_replay(&mut self) {
        self.halls.values_mut().for_each(Hall::see_all);
    }

    /// The line as it is, with its time and how many people are in it.
    #[cfg(feature = "durable")]
    pub(in crate::store::memory) fn snapshot(&self, line: &Name) -> Option<(u64, u64, LineEvent)> {
        let hall = self.halls.get(line)?;
        let event = LineEvent::Snapshot { hall: Box::new(hall.snapshot()) };
        Some((hall.time.now_ms, hall.places.len() as u64, event))
    }

    fn next_edition(&mut self, now: Timestamp) -> u64 {
        self.last_edition = now.as_micros().max(self.last_edition + 1);
        self.last_edition
    }
}

impl Step<'_> {
    /// The line, after its time has gone on.
    pub(in crate::store::memory) fn attend<'b>(&'b mut self, name: &'b Name) -> Option<Attended<'b>> {
        let hall = self.lines.halls.get_mut(name)?;
        hall.go_on(self.now);
        let mut attended = Attended { name, hall, journal: self.journal };
        if let Some(event) = attended.hall.time_comes(self.now) {
            attended.happen(&event);
        }
        Some(attended)
    }

    pub(in crate::store::memory) fn attend_edition<'b>(
        &'b mut self,
        name: &'b Name,
        edition: u64,
    ) -> Option<Attended<'b>> {
        self.lines.halls.get(name).filter(|hall| hall.edition == edition)?;
        self.attend(name)
    }
}

impl Attended<'_> {
    pub(in crate::store::memory) fn happen(&mut self, event: &LineEvent) {
        self.hall.apply(event);
        self.journal.note_line(self.name, self.hall.time.now_ms, event);
    }
}

pub(super) fn line_open(
    step: &mut Step<'_>,
    line: &Name,
    terms: &LineTerms,
    secrets: &LineSecrets,
) -> LineOpen {
    let edition = step.lines.next_edition(step.now);
    if let Some(mut attended) = step.attend(line) {
        return replace_terms(&mut attended, terms, edition);
    }
    let hall = Hall::new(*terms, *secrets, edition);
    let hall = step.lines.halls.entry(line.clone()).or_insert(hall);
    let created = LineEvent::Created { terms: *terms, secrets: *secrets, edition };
    Attended { name: line, hall, journal: step.journal }.happen(&created);
    // Its time may have come already.
    step.attend(line);
    LineOpen::Created
}

fn replace_terms(attended: &mut Attended<'_>, terms: &LineTerms, edition: u64) -> LineOpen {
    let Hall { terms: before, opened_at, early, .. } = &*attended.hall;
    let is_open = opened_at.is_some() || early.is_some();
    let has_people = attended.hall.tail() > 0;
    if is_open && (before.opens_at != terms.opens_at || before.prequeue != terms.prequeue)
        || has_people && before.prequeue != terms.prequeue
    {
        return LineOpen::TooLate;
    }
    if before != terms {
        attended.happen(&LineEvent::Replaced { terms: *terms, edition });
    }
    LineOpen::Changed
}

pub(super) fn line_change(step: &mut Step<'_>, line: &Name, change: LineChange) -> Option<LineState> {
    let mut attended = step.attend(line)?;
    let to = match change {
        LineChange::Pause => Switch::Paused,
        LineChange::Resume => Switch::Running,
        LineChange::Close => Switch::Closed,
    };
    if attended.hall.switch != Switch::Closed && attended.hall.switch != to {
        attended.happen(&LineEvent::Switched { to });
    }
    Some(attended.hall.state())
}

pub(super) fn line_admit(step: &mut Step<'_>, line: &Name, count: u32, request: Token) -> Option<LineAdmit> {
    let mut attended = step.attend(line)?;
    if let Some((_, asked)) = attended.hall.requests.iter().find(|(known, _)| *known == request) {
        return Some(LineAdmit::Again { asked: *asked });
    }
    let state = attended.hall.state();
    if !matches!(state, LineState::Running | LineState::Paused) {
        return Some(LineAdmit::NotOpen(state));
    }
    let waiting = u32::try_from(attended.hall.waiting()).unwrap_or(u32::MAX);
    let before = attended.hall.extra;
    let extra = before.saturating_add(count).min(waiting);
    let extra_to = attended.hall.tail();
    attended.happen(&LineEvent::Noted { request, asked: count, extra, extra_to });
    Some(LineAdmit::Noted { count: extra - before.min(extra) })
}

pub(super) fn line_read(step: &mut Step<'_>, line: &Name) -> Option<LineStatus> {
    step.attend(line).map(|attended| attended.hall.status())
}

pub(super) fn line_list(lines: &Lines, after: Option<&Name>, limit: usize) -> Vec<Name> {
    let after = after.map_or(Bound::Unbounded, Bound::Excluded);
    lines
        .halls
        .range::<Name, _>((after, Bound::Unbounded))
        .map(|(name, _)| name.clone())
        .take(limit)
        .collect()
}

pub(super) fn line_forget(step: &mut Step<'_>, line: &Name) -> bool {
    match step.lines.halls.get(line).map(|hall| hall.switch) {
        None => true,
        Some(Switch::Closed) => {
            step.lines.halls.remove(line);
            step.journal.forget_line(line);
            true
        }
        Some(_) => false,
    }
}

pub(super) fn line_enter(
    step: &mut Step<'_>,
    line: &Name,
    edition: u64,
    wishes: &[EnterWish],
) -> Option<Told<Enter>> {
    let mut attended = step.attend_edition(line, edition)?;
    let mut each = Vec::with_capacity(wishes.len());
    for wish in wishes {
        each.push(enter(&mut attended, wish));
    }
    Some(Told { crowd: attended.hall.crowd(), each })
}

fn enter(attended: &mut Attended<'_>, wish: &EnterWish) -> Enter {
    let hall = &mut *attended.hall;
    if let Some(number) = hall.numbers.get(&wish.user).copied() {
        let known = wish.known.filter(|known| known.number == number);
        let was_drawn = hall.drawn.is_some_and(|drawn| number < drawn.early);
        if was_drawn && known.is_none() {
            return Enter::Drawn { number };
        }
        let ticket = known.filter(|_| was_drawn).unwrap_or(TicketAt { number, place: number });
        hall.see(ticket.place);
        let standing = hall.standing(ticket);
        if !matches!(standing, Standing::Over(_) | Standing::Unknown) {
            return Enter::In { number, is_new: false, standing };
        }
    }
    match hall.state() {
        LineState::Closed => return Enter::Closed,
        LineState::Scheduled => {
            let opens_at = hall.terms.opens_at.unwrap_or(Timestamp::from_micros(0));
            return Enter::NotOpen { opens_at };
        }
        LineState::Early if hall.tail() >= MAX_EARLY => return Enter::Full,
        _ => {}
    }
    attended.happen(&LineEvent::Entered { users: vec![wish.user.clone()] });
    let number = attended.hall.tail() - 1;
    let standing = attended.hall.standing(TicketAt { number, place: number });
    Enter::In { number, is_new: true, standing }
}

pub(super) fn line_tick(step: &mut Step<'_>, line: &Name, edition: u64, tick: &Tick) -> Option<LineTick> {
    let mut attended = step.attend_edition(line, edition)?;
    let mut done = TickDone::default();
    for place in &tick.seen {
        attended.hall.see(*place);
    }
    for event in attended.hall.overdue() {
        if let LineEvent::Ended { ending: Ending::NoShow, .. } = event {
            done.no_shows += 1;
        } else {
            done.expired += 1;
        }
        attended.happen(&event);
    }
    if let Some(batch) = attended.hall.next_batch() {
        attended.happen(&batch);
    }
    let mut more = false;
    if let Some((passed, is_more)) = attended.hall.admission() {
        more = is_more;
        note_passed(&mut attended, &passed, &mut done);
    }
    if let Some(trimmed) = attended.hall.forgettable() {
        attended.happen(&trimmed);
    }
    Some(attended.hall.tell(tick, done, more))
}

fn note_passed(attended: &mut Attended<'_>, passed: &LineEvent, done: &mut TickDone) {
    done.waits = attended.hall.waits(passed);
    done.admitted = done.waits.iter().map(|(_, people)| people).sum();
    if let LineEvent::Passed { abandoned, .. } = passed {
        done.abandoned = u32::try_from(abandoned.len()).unwrap_or(u32::MAX);
    }
    attended.hall.pace.passed(u64::from(done.admitted) + u64::from(done.abandoned));
    attended.happen(passed);
}

pub(super) fn line_arrivals(step: &mut Step<'_>, line: &Name, from: u64, limit: usize) -> Option<Arrivals> {
    let attended = step.attend(line)?;
    let hall = &*attended.hall;
    let early = hall.early.filter(|_| hall.base == 0)?;
    let last = early.min(from.saturating_add(limit.min(MAX_ARRIVALS) as u64));
    let people = (from..last).filter_map(|number| {
        let user = hall.user_of(number)?.clone();
        Some(Arrival { user, is_gone: hall.drawn.is_none() && hall.is_absent(number) })
    });
    Some(Arrivals { people: people.collect() })
}

pub(super) fn line_draw(step: &mut Step<'_>, line: &Name, draw: &Draw) -> Option<LineDraw> {
    let edition = step.lines.next_edition(step.now);
    let mut attended = step.attend(line)?;
    let hall = &*attended.hall;
    if hall.drawn.is_some() {
        return Some(LineDraw::Already);
    }
    if hall.state() != LineState::Drawing {
        return Some(LineDraw::NotDrawing);
    }
    if hall.early != Some(draw.drawn.early) {
        return Some(LineDraw::Again);
    }
    attended.happen(&draw.event(edition));
    Some(LineDraw::Drawn)
}
