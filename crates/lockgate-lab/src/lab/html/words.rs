//! What somebody has to know who has never heard of any of this.

use std::fmt::Write as _;

use super::Failure;
use crate::lab::report::Report;

/// Five sentences.
pub(super) fn introduction(report: &Report) -> String {
    let (users, stock) = (report.options.users, report.options.stock);
    format!(
        "<p>A shop has {stock} coupons, and {users} people press the button at the same moment. Its programs look up how many are \
         left, and write down who has one, many of them at a time; between looking and writing, somebody else may have been \
         faster, and then more coupons are given away than there are, or the books are wrong. There are many ways to prevent \
         that, some in the program itself, some in the database that keeps the books, some with Redis, a very fast notebook in \
         memory that all programs share. This page lets each of them serve the same crowd on real servers, and an auditor who \
         sees only what people were told and what the books say in the end judges whether it was right. The table says \
         who was right; the pictures say what it cost.</p>\n"
    )
}

/// Each word that the page needs, in one line.
const GLOSSARY: [(&str, &str); 22] = [
    ("Strategy", "a way to let many people take something limited at once."),
    ("Exact", "everybody was told the truth, nobody got too much, and the books agree."),
    ("Lost update", "two wrote down at the same time, and what one of them wrote is gone."),
    ("Oversold", "more were given away than there were."),
    ("Undersold", "some were left, although somebody was turned away."),
    ("Duplicate", "somebody has two."),
    ("Stuck", "somebody never got an answer."),
    (
        "Gave up",
        "somebody was told \u{201c}too busy, try again later\u{201d}, which is honest and no error in the books.",
    ),
    (
        "Claim",
        "what a strategy says of itself beforehand. One that claims to fail must be seen to fail, or the lab is not content.",
    ),
    (
        "Process",
        "a running program. A lock in its memory is unknown to a second one, even of the same program.",
    ),
    (
        "Database",
        "keeps the books for good: here, how many are left and who has one. It is asked in SQL statements.",
    ),
    ("Transaction", "several statements that count together or not at all, from BEGIN to COMMIT."),
    (
        "Redis",
        "a server that keeps data in memory, does one thing at a time, and is much faster than a database.",
    ),
    ("Round trip", "one question to a server and its answer; whoever asks waits for it."),
    ("Script", "several commands that Redis carries out as one step, so that nobody comes in between."),
    ("Pipeline", "several commands sent together to save round trips. They are not one step."),
    ("Lock", "a sign \u{201c}occupied\u{201d}: whoever has it works, the others wait."),
    (
        "Lease",
        "how long a lock belongs to its holder unless it says that it needs longer; it ends by itself if the holder dies.",
    ),
    ("Fence", "a number that rises with every holder of a lock; the books refuse a write with an old one."),
    ("Queue", "wishes are put in a row, and one worker serves them one after the other."),
    ("Write-back", "what is written into the database after everybody has an answer."),
    ("Median", "the one in the middle: half of the rounds took less, half took more."),
];

pub(super) fn glossary() -> Result<String, Failure> {
    let mut text = String::from("<h2>Words</h2>\n<dl>\n");
    for (word, meaning) in GLOSSARY {
        writeln!(text, "<dt>{word}</dt><dd>{meaning}</dd>")?;
    }
    text.push_str("</dl>\n");
    Ok(text)
}
