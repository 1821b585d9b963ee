//! The table that one sees first: who was right, in a symbol, a word and a colour; then what it cost.

use std::fmt::Write as _;

use super::Failure;
use super::escape::Text;
use crate::lab::report::{Family, Report, Tried};
use crate::lab::verdict::Verdict;

const HEAD: &str = "<h2>At a glance</h2>\n<table class=\"glance\">\n<thead><tr><th>Strategy</th><th>Correct?</th>\
    <th>What it claims</th><th>What was found (in how many rounds)</th><th class=\"figure\">Time, ms</th>\
    <th class=\"figure\">Redis round trips</th><th class=\"figure\">SQL statements</th></tr></thead>\n<tbody>\n";

const FOOT: &str = "</tbody>\n</table>\n<p class=\"faint\">Times are medians over the rounds. Round trips and statements are for \
    each user who got one.</p>\n";

pub(super) fn table(report: &Report) -> Result<String, Failure> {
    let mut text = String::from(HEAD);
    let mut family = None;
    for tried in &report.strategies {
        if family != Some(tried.family) {
            family = Some(tried.family);
            let words = based_on(tried.family);
            writeln!(text, "<tr class=\"group\"><th colspan=\"7\">{words}</th></tr>")?;
        }
        row(&mut text, tried)?;
    }
    text.push_str(FOOT);
    Ok(text)
}

fn based_on(family: Family) -> &'static str {
    match family {
        Family::Nothing => "Nothing at all",
        Family::InProcess => "Something in the memory of one process",
        Family::Database => "The database decides",
        Family::RedisLock => "A lock in Redis around the work in the database",
        Family::RedisDecides => "Redis decides, and the database is written afterwards",
        Family::Queue => "A queue, and somebody who works it off",
        Family::Lockgate => "Lockgate itself",
    }
}

fn row(text: &mut String, tried: &Tried) -> Result<(), Failure> {
    let (title, name) = (Text(&tried.title), Text(&tried.name));
    let claim = claim(tried);
    let found = tried.finding.in_words();
    writeln!(
        text,
        "<tr><td><strong>{title}</strong><br><small><code>{name}</code></small></td>\
         <td>{}</td><td data-label=\"claims\">{}</td><td data-label=\"found\">{}</td>\
         <td class=\"figure\" data-label=\"time, ms\">{}</td>\
         <td class=\"figure\" data-label=\"Redis round trips\">{}</td>\
         <td class=\"figure\" data-label=\"SQL statements\">{}</td></tr>",
        badge(tried),
        Text(&claim),
        Text(&found),
        tried.median_ms().map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0}")),
        per_success(tried.redis_round_trips_per_success()),
        per_success(tried.sql_statements_per_success()),
    )?;
    Ok(())
}

/// Both parts of it where they differ: what is exact in one process only looks exact in one process.
fn claim(tried: &Tried) -> String {
    let (alone, across) = (tried.claim.in_one_process.in_words(), tried.claim.across_processes.in_words());
    if alone == across { alone } else { format!("in one process {alone}; across processes {across}") }
}

pub(super) fn badge(tried: &Tried) -> String {
    let verdict = Verdict::of(tried);
    format!("<span class=\"badge {}\">{} {}</span>", verdict.class(), verdict.symbol(), verdict.word())
}

fn per_success(figure: Option<f64>) -> String {
    figure.filter(|figure| *figure > 0.0).map_or_else(|| "–".to_owned(), |figure| format!("{figure:.1}"))
}
