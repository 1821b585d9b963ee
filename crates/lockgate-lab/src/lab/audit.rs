//! The auditor: says what went wrong, from what users were told and what the database holds in the end.
//!
//! It knows nothing of the strategies, of locks or of Redis. It compares three things that anybody can see: what every user was
//! told, how many rows were written for whom, and the number in the stock column. They have to agree.
//!
//! ```text
//! stock before 300, after 12; 300 rows        12 rows left no trace in the stock: lost updates
//! stock before 300; 317 rows                  17 more than there were: oversold
//! 280 rows, 20 left, and 20 were turned away  undersold
//! two rows for one user                       duplicates
//! told "you have one", and no row             a lost update too: the row is what got lost
//! told nothing                                stuck
//! ```

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What a user was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// You have one.
    Got,
    /// There are none left.
    SoldOut,
    /// Too busy, try again later.
    GaveUp,
    /// An error: it may have happened or not.
    Failed,
    /// Nothing, in time.
    NoAnswer,
}

/// One user's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Who.
    pub user: u64,
    /// What the user was told.
    pub answer: Answer,
    /// How long that took, in microseconds.
    pub after_us: u64,
}

/// What the database holds when all is over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// The stock column.
    pub stock: i64,
    /// The user of every row that says that somebody has one.
    pub rows: Vec<u64>,
}

/// A way to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flaw {
    /// Somebody's write is not to be found in the end.
    LostUpdates,
    /// More were given away than there were.
    Oversold,
    /// Some were left, and somebody was turned away.
    Undersold,
    /// Somebody has two.
    Duplicates,
    /// Somebody never had an answer.
    Stuck,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Flaw::LostUpdates => "lost updates",
            Flaw::Oversold => "oversold",
            Flaw::Undersold => "undersold",
            Flaw::Duplicates => "duplicates",
            Flaw::Stuck => "stuck",
        })
    }
}

/// What the auditor counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// The stock column in the end.
    pub final_stock: i64,
    /// Rows that say that somebody has one.
    pub rows: u64,
    /// Rows that the stock column does not know of.
    pub lost_decrements: u64,
    /// Pieces that have left the stock column, without a row.
    pub lost_rows: u64,
    /// Users who were told that they have one, and have no row.
    pub broken_promises: u64,
    /// Users who were told that there are none, and have a row.
    pub unasked_rows: u64,
    /// Rows beyond the stock, or promises, whichever are more.
    pub oversold_by: u64,
    /// Pieces that were left although so many users were turned away.
    pub undersold_by: u64,
    /// Rows beyond the first of the same user.
    pub duplicate_rows: u64,
    /// Users without an answer.
    pub stuck: u64,
}

impl Evidence {
    /// What is wrong.
    #[must_use]
    pub fn flaws(&self) -> Vec<Flaw> {
        let lost = self.lost_decrements + self.lost_rows + self.broken_promises + self.unasked_rows;
        let found = [
            (lost, Flaw::LostUpdates),
            (self.oversold_by, Flaw::Oversold),
            (self.undersold_by, Flaw::Undersold),
            (self.duplicate_rows, Flaw::Duplicates),
            (self.stuck, Flaw::Stuck),
        ];
        found.into_iter().filter(|(count, _)| *count > 0).map(|(_, flaw)| flaw).collect()
    }

    /// What is wrong, with the figures.
    #[must_use]
    pub fn in_words(&self) -> String {
        let parts = [
            (self.lost_decrements, "not taken off the stock"),
            (self.lost_rows, "taken off without a row"),
            (self.broken_promises, "promised without a row"),
            (self.unasked_rows, "rows for users who were turned away"),
            (self.oversold_by, "sold beyond the stock"),
            (self.undersold_by, "left although users were turned away"),
            (self.duplicate_rows, "second rows of one user"),
            (self.stuck, "users without an answer"),
        ];
        let words: Vec<_> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if words.is_empty() { "exact".to_owned() } else { words.join(", ") }
    }
}

/// Compares what was said with what was written.
#[must_use]
pub fn audit(stock: u64, history: &[Heard], books: &Books) -> Evidence {
    let mut rows_of: HashMap<u64, u64> = HashMap::new();
    for user in &books.rows {
        *rows_of.entry(*user).or_default() += 1;
    }
    let having = |answer: Answer| history.iter().filter(move |heard| heard.answer == answer);
    let with_row = |heard: &&Heard| rows_of.contains_key(&heard.user);
    let rows = count(books.rows.iter());
    let got = count(having(Answer::Got));
    // A stock column that has risen has lost all that was taken off it, and more.
    let taken = i128::from(stock) - i128::from(books.stock);
    let turned_away =
        count(having(Answer::SoldOut)) + count(having(Answer::GaveUp)) + count(having(Answer::Failed));
    Evidence {
        final_stock: books.stock,
        rows,
        lost_decrements: above(i128::from(rows), taken),
        lost_rows: above(taken, i128::from(rows)),
        broken_promises: count(having(Answer::Got).filter(|heard| !with_row(heard))),
        unasked_rows: count(having(Answer::SoldOut).chain(having(Answer::GaveUp)).filter(with_row)),
        oversold_by: rows.max(got).saturating_sub(stock),
        undersold_by: stock.saturating_sub(rows).min(turned_away),
        duplicate_rows: rows - count(rows_of.keys()),
        stuck: count(having(Answer::NoAnswer)),
    }
}

fn count(things: impl Iterator) -> u64 {
    things.fold(0, |count, _| count + 1)
}

fn above(one: i128, other: i128) -> u64 {
    u64::try_from(one - other).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(user: u64, answer: Answer) -> Heard {
        Heard { user, answer, after_us: 1_000 }
    }

    /// The first so many got one, the others were told that there are none.
    fn fair(users: u64, stock: u64) -> Vec<Heard> {
        let answer = |user| if user < stock { Answer::Got } else { Answer::SoldOut };
        (0..users).map(|user| heard(user, answer(user))).collect()
    }

    fn books(stock: i64, rows: impl IntoIterator<Item = u64>) -> Books {
        Books { stock, rows: rows.into_iter().collect() }
    }

    fn flaws(stock: u64, history: &[Heard], books: &Books) -> Vec<Flaw> {
        audit(stock, history, books).flaws()
    }

    #[test]
    fn what_agrees_is_exact() {
        for (users, stock) in [(300, 300), (400, 300), (200, 300), (1, 1)] {
            let sold = users.min(stock);
            let left = i64::try_from(stock - sold).unwrap();
            let evidence = audit(stock, &fair(users, stock), &books(left, 0..sold));
            assert_eq!(evidence.flaws(), [], "{evidence:?}");
            assert_eq!((evidence.rows, evidence.in_words().as_str()), (sold, "exact"));
        }
    }

    #[test]
    fn rows_that_the_stock_does_not_know_of_are_lost_updates() {
        let evidence = audit(300, &fair(300, 300), &books(12, 0..300));
        assert_eq!((evidence.flaws(), evidence.lost_decrements), (vec![Flaw::LostUpdates], 12));
        assert_eq!(evidence.in_words(), "12 not taken off the stock");
    }

    #[test]
    fn pieces_that_left_without_a_row_are_lost_updates() {
        let mut history = fair(300, 300);
        history[299].answer = Answer::Failed;
        let evidence = audit(300, &history, &books(0, 0..299));
        assert_eq!(evidence.lost_rows, 1);
        assert!(evidence.flaws().contains(&Flaw::LostUpdates));
    }

    #[test]
    fn a_promise_without_a_row_is_a_lost_update() {
        let evidence = audit(300, &fair(300, 300), &books(1, 0..299));
        assert_eq!((evidence.flaws(), evidence.broken_promises), (vec![Flaw::LostUpdates], 1));
    }

    #[test]
    fn a_row_for_somebody_who_was_turned_away_is_noticed_although_the_sums_agree() {
        // User 300 was turned away and has the row of user 299, who was promised one.
        let evidence = audit(300, &fair(301, 300), &books(0, (0..299).chain([300])));
        assert_eq!((evidence.broken_promises, evidence.unasked_rows), (1, 1));
        assert_eq!(evidence.flaws(), [Flaw::LostUpdates]);
    }

    #[test]
    fn more_rows_than_stock_are_oversold() {
        let history: Vec<_> = (0..317).map(|user| heard(user, Answer::Got)).collect();
        let evidence = audit(300, &history, &books(-17, 0..317));
        assert_eq!((evidence.flaws(), evidence.oversold_by), (vec![Flaw::Oversold], 17));
    }

    #[test]
    fn more_promises_than_stock_are_oversold_even_if_the_rows_are_right() {
        let history: Vec<_> = (0..301).map(|user| heard(user, Answer::Got)).collect();
        assert_eq!(flaws(300, &history, &books(0, 0..300)), [Flaw::LostUpdates, Flaw::Oversold]);
    }

    #[test]
    fn both_at_once_are_both_reported() {
        let history: Vec<_> = (0..400).map(|user| heard(user, Answer::Got)).collect();
        assert_eq!(flaws(300, &history, &books(250, 0..400)), [Flaw::LostUpdates, Flaw::Oversold]);
    }

    #[test]
    fn what_is_left_while_users_are_turned_away_is_undersold() {
        let evidence = audit(300, &fair(400, 280), &books(20, 0..280));
        assert_eq!((evidence.flaws(), evidence.undersold_by), (vec![Flaw::Undersold], 20));
        let mut one_gave_up = fair(300, 300);
        one_gave_up[299].answer = Answer::GaveUp;
        let evidence = audit(300, &one_gave_up, &books(1, 0..299));
        assert_eq!((evidence.flaws(), evidence.undersold_by), (vec![Flaw::Undersold], 1));
    }

    #[test]
    fn somebody_who_gave_up_takes_nothing_from_the_others() {
        let mut history = fair(301, 300);
        history[300].answer = Answer::GaveUp;
        assert_eq!(flaws(300, &history, &books(0, 0..300)), []);
    }

    #[test]
    fn a_second_row_of_one_user_is_a_duplicate() {
        let evidence = audit(300, &fair(299, 300), &books(0, (0..299).chain([7])));
        assert_eq!((evidence.flaws(), evidence.duplicate_rows), (vec![Flaw::Duplicates], 1));
    }

    #[test]
    fn users_without_an_answer_are_stuck_and_nothing_else() {
        let mut history = fair(300, 300);
        for heard in &mut history[100..] {
            heard.answer = Answer::NoAnswer;
        }
        let evidence = audit(300, &history, &books(200, 0..100));
        assert_eq!((evidence.flaws(), evidence.stuck), (vec![Flaw::Stuck], 200));
    }

    #[test]
    fn who_had_no_answer_may_have_a_row() {
        let mut history = fair(10, 10);
        history[9].answer = Answer::NoAnswer;
        assert_eq!(flaws(10, &history, &books(0, 0..10)), [Flaw::Stuck]);
        history[9].answer = Answer::Failed;
        assert_eq!(flaws(10, &history, &books(0, 0..10)), []);
    }

    #[test]
    fn a_stock_that_has_risen_counts_against_it() {
        assert_eq!(audit(10, &fair(10, 10), &books(11, 0..10)).lost_decrements, 11);
    }
}
