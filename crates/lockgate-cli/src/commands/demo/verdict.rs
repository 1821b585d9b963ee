//! Was it fair? Each check holds two sources against each other that know nothing of each other: what the shoppers were told over
//! HTTP, what the server said of itself, and what the journal and the ledger have on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lockgate::clock::Moment;
use lockgate::ledger::Light;
use serde_json::{Value, json};

use super::progress::reasons;
use super::shop::{Audited, Books, Sale, Sold, TICK};
use super::tally::{Ending, Story, Tally};
use crate::commands::Outcome;

/// What came of it.
#[derive(Debug)]
pub(super) struct Verdict {
    sale: Sale,
    checks: Vec<Check>,
    had_a_turn: u64,
    granted: u64,
    endings: [u64; 4],
    refused: BTreeMap<String, u64>,
    refused_in_words: String,
}

#[derive(Debug)]
struct Check {
    what: &'static str,
    holds: bool,
    found: String,
}

impl Verdict {
    pub(super) fn of(sale: &Sale, tally: &Tally, sold: &Sold, books: &Books) -> Self {
        let stories = &sold.stories;
        let count = |ending| count(stories, |story| story.ending == Some(ending));
        Self {
            sale: sale.clone(),
            checks: vec![
                nothing_oversold(sale, books),
                nobody_twice(books),
                everybody_has_what_they_were_told(stories, books),
                the_server_says_the_same(sold, books),
                the_books_agree(books),
                everybody_is_accounted_for(stories, sold, books),
                nobody_was_overtaken(stories),
                nothing_was_left_that_somebody_was_denied(sale, tally, books),
                nothing_else_happened(stories),
            ],
            had_a_turn: count_admitted(stories),
            granted: books.rows.len() as u64,
            endings: [Ending::Left, Ending::PassedOver, Ending::NoShow, Ending::Vanished].map(count),
            refused: tally.refused(),
            refused_in_words: reasons(tally),
        }
    }

    fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.holds)
    }

    pub(super) fn to_json(&self) -> Value {
        let Sale { shoppers, stock, batch, every, seed } = &self.sale;
        let [left, passed_over, no_show, vanished] = self.endings;
        let check =
            |check: &Check| json!({ "check": check.what, "holds": check.holds, "found": check.found });
        json!({
            "holds": self.holds(), "seed": seed, "shoppers": shoppers, "stock": stock, "batch": batch,
            "every_ms": every.as_millis(), "admitted": self.had_a_turn, "granted": self.granted, "left": left,
            "passed_over": passed_over, "no_shows": no_show, "vanished": vanished, "refused": self.refused,
            "checks": self.checks.iter().map(check).collect::<Vec<_>>(),
        })
    }

    pub(super) fn into_outcome(self) -> Outcome {
        let Some(first) = self.checks.iter().find(|check| !check.holds) else { return Ok(()) };
        let (what, found, seed) = (first.what, &first.found, self.sale.seed);
        Err(format!("it does not hold that {what} ({found}); play it again with --seed {seed}").into())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sale: Sale { shoppers, seed, .. }, had_a_turn, granted, .. } = self;
        let [left, passed_over, no_show, vanished] = self.endings;
        writeln!(
            f,
            "{shoppers} shoppers came, {had_a_turn} had their turn, {granted} got a coupon (seed {seed})"
        )?;
        writeln!(
            f,
            "{left} left, {vanished} vanished without a word, {} were there and missed their turn",
            passed_over + no_show
        )?;
        writeln!(f, "refused: {}\n", self.refused_in_words)?;
        for Check { what, holds, found } in &self.checks {
            writeln!(f, "  {} {what}: {found}", if *holds { "yes" } else { " NO" })?;
        }
        writeln!(f, "\n{}", if self.holds() { "It was fair." } else { "It was not fair." })
    }
}

fn count(stories: &[Story], which: impl Fn(&Story) -> bool) -> u64 {
    stories.iter().filter(|story| which(story)).count() as u64
}

fn count_admitted(stories: &[Story]) -> u64 {
    count(stories, |story| story.admitted.is_some())
}

fn nothing_oversold(sale: &Sale, books: &Books) -> Check {
    let sold: u64 = books.rows.iter().map(|row| row.quantity).sum();
    let numbers: BTreeSet<_> = books.rows.iter().map(|row| row.seq).collect();
    let dense = numbers.iter().copied().eq(1..=books.rows.len() as u64);
    Check {
        what: "nothing is oversold",
        holds: sold <= u64::from(sale.stock) && dense,
        found: format!("{sold} of {} in the ledger, numbered without a gap: {dense}", sale.stock),
    }
}

fn nobody_twice(books: &Books) -> Check {
    let users: BTreeSet<_> = books.rows.iter().map(|row| &row.user).collect();
    let (rows, users) = (books.rows.len(), users.len());
    Check { what: "nobody has two", holds: rows == users, found: format!("{rows} rows, {users} users") }
}

fn everybody_has_what_they_were_told(stories: &[Story], books: &Books) -> Check {
    let told: BTreeSet<_> =
        stories.iter().filter_map(|story| Some((story.user.as_str(), story.granted?))).collect();
    let written: BTreeSet<_> = books.rows.iter().map(|row| (row.user.as_str(), row.seq)).collect();
    let differ: Vec<_> = told.symmetric_difference(&written).take(3).collect();
    Check {
        what: "everybody has what they were told, by number",
        holds: differ.is_empty(),
        found: match differ.is_empty() {
            true => format!("{} shoppers, {} rows", told.len(), written.len()),
            false => format!("not {differ:?}"),
        },
    }
}

fn the_server_says_the_same(sold: &Sold, books: &Books) -> Check {
    let (says, written) = (&sold.coupon["issued"], books.rows.len());
    Check {
        what: "the server counted the same",
        holds: *says == written,
        found: format!("it says {says}, the ledger {written}"),
    }
}

/// The machinery of `lockgate audit`.
fn the_books_agree(books: &Books) -> Check {
    let Audited { light, granted, persisted } = books.audit;
    Check {
        what: "journal and ledger agree",
        holds: light == Light::Green && granted == persisted,
        found: format!("{}: {granted} granted, {persisted} persisted", light.as_str()),
    }
}

/// Who vanished was passed over, or was admitted and did not come. Who left in the very moment of being admitted has ended a turn
/// without knowing. Everybody else knows what became of them.
fn everybody_is_accounted_for(stories: &[Story], sold: &Sold, books: &Books) -> Check {
    let line = &books.line;
    let told = |ending| count(stories, |story| story.ending == Some(ending));
    let (entered, turns) = (count(stories, |story| story.number.is_some()), count_admitted(stories));
    let unknowing = told(Ending::Left).checked_sub(line.left);
    let unseen = (told(Ending::Vanished) + told(Ending::PassedOver)).checked_sub(line.abandoned);
    let admitted = unknowing.zip(unseen).map(|(left, unseen)| turns + told(Ending::NoShow) + left + unseen);
    let ended = unknowing.map(|left| turns + left);
    let says = |member: &str| sold.line[member].as_u64();
    let said = [says("arrived"), says("admitted"), says("left"), says("abandoned")];
    Check {
        what: "everybody who came is accounted for",
        holds: said == [line.arrived, line.admitted, line.left, line.abandoned].map(Some)
            && line.arrived == entered
            && admitted == Some(line.admitted)
            && ended == Some(line.ended),
        found: format!(
            "{} came, {} were admitted, {} left, {} were passed over",
            line.arrived, line.admitted, line.left, line.abandoned
        ),
    }
}

/// In the order of the tickets: whoever was told to wait may not stand before somebody who had been let in by then. What the server
/// tells may be two ticks old.
fn nobody_was_overtaken(stories: &[Story]) -> Check {
    let mut in_order: Vec<_> = stories.iter().filter_map(|story| Some((story.number?, story))).collect();
    in_order.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
    let mut earliest_behind: Option<Moment> = None;
    let mut overtaken = 0;
    for (_, story) in &in_order {
        if let (Some(waited), Some(behind)) = (story.last_waited, earliest_behind)
            && waited > behind + 2 * TICK
        {
            overtaken += 1;
        }
        earliest_behind = earliest_behind.into_iter().chain(story.admitted).min();
    }
    let numbers: BTreeSet<_> = in_order.iter().map(|(number, _)| number).collect();
    let doubled = in_order.len() - numbers.len();
    Check {
        what: "they were admitted in the order in which they came",
        holds: overtaken == 0 && doubled == 0,
        found: format!("{overtaken} of {} overtaken, {doubled} places given twice", in_order.len()),
    }
}

fn nothing_was_left_that_somebody_was_denied(sale: &Sale, tally: &Tally, books: &Books) -> Check {
    let denied = tally.refused().get("sold-out").copied().unwrap_or(0);
    let left = u64::from(sale.stock).saturating_sub(books.rows.len() as u64);
    Check {
        what: "nobody was told \"sold out\" too early",
        holds: denied == 0 || left == 0,
        found: format!("{denied} were told, {left} are left"),
    }
}

fn nothing_else_happened(stories: &[Story]) -> Check {
    let mut surprises =
        stories.iter().flat_map(|story| story.surprises.iter().map(|what| (&story.user, what)));
    let found = match surprises.next() {
        None => "every answer was one that the shopper had to expect".to_owned(),
        Some((user, what)) => format!("{user}: {what}; and {} more", surprises.count()),
    };
    Check {
        what: "nothing else happened",
        holds: stories.iter().all(|story| story.surprises.is_empty()),
        found,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockgate::clock::Clock;

    use super::super::shop::{Counted, Row};
    use super::*;

    /// Four came: two were given one, one left, one vanished and was passed over.
    fn fair() -> (Sale, Sold, Books) {
        let sale = Sale { shoppers: 4, stock: 2, batch: 1, every: Duration::from_secs(1), seed: 1 };
        let began = Clock::system().monotonic();
        let story =
            |number: u64| Story { user: format!("u{number}"), number: Some(number), ..Story::default() };
        let turn = |number: u32| Story {
            last_waited: Some(began + TICK * number),
            admitted: Some(began + TICK * (number + 1)),
            granted: Some(u64::from(number) + 1),
            ..story(u64::from(number))
        };
        let gone = |number, ending| Story { ending: Some(ending), ..story(number) };
        let stories = vec![turn(0), turn(1), gone(2, Ending::Left), gone(3, Ending::Vanished)];
        let row = |seq: u64| Row { seq, user: format!("u{}", seq - 1), quantity: 1 };
        let line = json!({ "arrived": 4, "admitted": 2, "left": 1, "abandoned": 1 });
        let books = Books {
            rows: vec![row(1), row(2)],
            audit: Audited { light: Light::Green, granted: 2, persisted: 2 },
            line: Counted { arrived: 4, admitted: 2, left: 1, abandoned: 1, ended: 2 },
        };
        (sale, Sold { stories, coupon: json!({ "issued": 2 }), line }, books)
    }

    /// The checks that do not hold when this is done to a fair sale.
    fn broken(what: impl FnOnce(&mut Sale, &mut Sold, &mut Books)) -> Vec<&'static str> {
        let (mut sale, mut sold, mut books) = fair();
        what(&mut sale, &mut sold, &mut books);
        let tally = Tally::default();
        tally.refuse("sold-out");
        let verdict = Verdict::of(&sale, &tally, &sold, &books);
        let broken =
            verdict.checks.iter().filter(|check| !check.holds).map(|check| check.what).collect::<Vec<_>>();
        assert_eq!(verdict.holds(), broken.is_empty());
        assert_eq!(verdict.into_outcome().is_ok(), broken.is_empty());
        broken
    }

    #[test]
    fn a_fair_sale_is_fair_and_every_lie_is_found() {
        assert_eq!(broken(|_, _, _| {}), Vec::<&str>::new());
        let is_found = |by: &str, broken: Vec<&str>| assert!(broken.contains(&by), "{by}: {broken:?}");
        is_found("nothing is oversold", broken(|sale, _, _| sale.stock = 1));
        is_found("nothing is oversold", broken(|_, _, books| books.rows[1].seq = 3));
        is_found("nobody has two", broken(|_, _, books| books.rows[1].user = "u0".into()));
        let told = "everybody has what they were told, by number";
        is_found(told, broken(|_, sold, _| sold.stories[0].granted = None));
        is_found(told, broken(|_, sold, _| sold.stories[2].granted = Some(3)));
        is_found(told, broken(|_, _, books| books.rows.truncate(1)));
        is_found("the server counted the same", broken(|_, sold, _| sold.coupon["issued"] = json!(3)));
        is_found("journal and ledger agree", broken(|_, _, books| books.audit.light = Light::Red));
        is_found("journal and ledger agree", broken(|_, _, books| books.audit.persisted = 1));
        let accounted = "everybody who came is accounted for";
        is_found(accounted, broken(|_, _, books| books.line.arrived = 5));
        is_found(accounted, broken(|_, sold, _| sold.line["admitted"] = json!(3)));
        is_found(accounted, broken(|_, sold, _| sold.stories[3].ending = None));
        is_found(accounted, broken(|_, _, books| books.line.ended = 1));
        is_found("nobody was told \"sold out\" too early", broken(|sale, _, _| sale.stock = 3));
        is_found("nothing else happened", broken(|_, sold, _| sold.stories[0].surprises.push("x".into())));
    }

    #[test]
    fn who_waits_after_somebody_behind_was_admitted_was_overtaken() {
        let order = "they were admitted in the order in which they came";
        let last_waited = |ticks: u32| {
            broken(|_, sold, _| {
                let behind = sold.stories[1].admitted.unwrap();
                sold.stories[0].last_waited = Some(behind + TICK * ticks);
            })
        };
        assert!(last_waited(3).contains(&order));
        assert!(last_waited(2).is_empty(), "what was told may be two ticks old");
        assert!(
            broken(|_, sold, _| sold.stories[1].number = Some(0)).contains(&order),
            "one place, two people"
        );
    }
}
