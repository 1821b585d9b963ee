//! Everything that was counted, folded up: a table of the rounds for each strategy.

use std::fmt::Write as _;

use super::Failure;
use super::escape::Text;
use super::glance::badge;
use crate::lab::report::{Latency, Report, Round, Tried};

const COLUMNS: [&str; 19] = [
    "round",
    "users",
    "stock",
    "ms",
    "written back, ms",
    "got one",
    "sold out",
    "gave up",
    "failed",
    "no answer",
    "median wait, ms",
    "9 of 10",
    "99 of 100",
    "longest",
    "Redis round trips",
    "Redis commands",
    "SQL statements",
    "retries",
    "what the auditor says",
];

pub(super) fn all(report: &Report) -> Result<String, Failure> {
    let mut text = String::from("<h2>Every round</h2>\n");
    for tried in &report.strategies {
        strategy(&mut text, tried)?;
    }
    Ok(text)
}

fn strategy(text: &mut String, tried: &Tried) -> Result<(), Failure> {
    let (title, name) = (Text(&tried.title), Text(&tried.name));
    let (alone, across) = (tried.claim.in_one_process.in_words(), tried.claim.across_processes.in_words());
    write!(
        text,
        "<details><summary>{} {title} <small><code>{name}</code></small></summary>\n\
         <p>Claims: in one process {}; across processes {}.</p>\n<div class=\"scroll\"><table>\n<thead><tr>",
        badge(tried),
        Text(&alone),
        Text(&across),
    )?;
    for column in COLUMNS {
        write!(text, "<th>{column}</th>")?;
    }
    text.push_str("</tr></thead>\n<tbody>\n");
    for (number, round) in (1..).zip(&tried.rounds) {
        row(text, number, round)?;
    }
    text.push_str("</tbody>\n</table></div>\n");
    growth(text, tried)?;
    text.push_str("</details>\n");
    Ok(())
}

fn row(text: &mut String, number: u32, round: &Round) -> Result<(), Failure> {
    let Round { users, stock, elapsed_ms, write_back_ms, answers, cost, .. } = round;
    write!(
        text,
        "<tr><td>{number}</td><td>{users}</td><td>{stock}</td><td>{elapsed_ms:.1}</td><td>{write_back_ms:.1}</td>"
    )?;
    for count in [answers.got, answers.sold_out, answers.gave_up, answers.failed, answers.no_answer] {
        write!(text, "<td>{count}</td>")?;
    }
    for wait in waits(round.latency) {
        write!(text, "<td>{wait}</td>")?;
    }
    for count in [cost.redis_round_trips, cost.redis_commands, cost.sql_statements, cost.retries] {
        write!(text, "<td>{count}</td>")?;
    }
    let said = said(round);
    writeln!(text, "<td>{}</td></tr>", Text(&said))?;
    Ok(())
}

fn waits(latency: Option<Latency>) -> [String; 4] {
    let Some(Latency { p50_ms, p90_ms, p99_ms, max_ms }) = latency else {
        return [const { String::new() }; 4];
    };
    [p50_ms, p90_ms, p99_ms, max_ms].map(|wait| format!("{wait:.1}"))
}

/// The flaws, the figures behind them, and what else is remarkable.
fn said(round: &Round) -> String {
    let flaws: Vec<_> = round.flaws.iter().map(ToString::to_string).collect();
    let mut said = match flaws.as_slice() {
        [] => round.evidence.in_words(),
        flaws => format!("{}: {}", flaws.join(", "), round.evidence.in_words()),
    };
    let (rows, left) = (round.evidence.rows, round.evidence.final_stock);
    said.push_str(&format!("; {rows} rows, {left} left"));
    for note in &round.notes {
        said.push_str("; ");
        said.push_str(note);
    }
    said
}

fn growth(text: &mut String, tried: &Tried) -> Result<(), Failure> {
    if tried.growth.is_empty() {
        return Ok(());
    }
    let point = |point: &crate::lab::report::GrowthPoint| {
        let (users, stock, ms, rounds) = (point.users, point.stock, point.median_ms, point.rounds);
        format!("{users} users for {stock}: {ms:.1} ms ({rounds})")
    };
    let points: Vec<_> = tried.growth.iter().map(point).collect();
    writeln!(text, "<p class=\"faint\">Growth, with the number of rounds: {}.</p>", points.join("; "))?;
    Ok(())
}
