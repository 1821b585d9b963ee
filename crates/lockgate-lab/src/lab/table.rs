//! The report for people who read it in a terminal.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

use super::report::{Report, Tried};

/// Everything that fits on a screen: where it ran, a row per strategy, what was left out, and what is not as claimed.
#[must_use]
pub fn table(report: &Report) -> String {
    let mut text = format!("{}\n\n{}\n", conditions(report), rows(report));
    text.push_str(
        "\nTimes are medians: until everybody had an answer, and what was written to the database after that. Trips are round \
         trips to Redis and SQL statements, per user who got one.\n",
    );
    if !report.skipped.is_empty() {
        text.push_str("\nLeft out:\n");
        for skipped in &report.skipped {
            text.push_str(&format!("  {}: {}\n", skipped.strategy, skipped.why));
        }
    }
    text.push('\n');
    text.push_str(&verdict(report));
    text
}

fn conditions(report: &Report) -> String {
    let options = &report.options;
    let redis = report
        .redis
        .as_ref()
        .map_or_else(|| "no Redis".to_owned(), |redis| format!("{} {}", redis.name, redis.version));
    let database = format!("{} {}", report.database.name, report.database.version);
    let processes = counted(options.processes, "process", "processes");
    let rounds = counted(usize::try_from(options.rounds).unwrap_or(usize::MAX), "round", "rounds");
    format!(
        "{} users want one of {}, in {processes}, {rounds}, on {redis} and {database}, with {} cores.",
        options.users, options.stock, report.machine.cores
    )
}

fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("one {one}") } else { format!("{count} {many}") }
}

fn rows(report: &Report) -> Table {
    let mut table = Table::new();
    // Markdown, so that a result can be pasted into the docs as it is.
    table.load_style(ASCII_MARKDOWN);
    table.set_header([
        "strategy",
        "claims",
        "found",
        "as claimed",
        "ms",
        "written after",
        "Redis trips",
        "SQL",
        "retries",
    ]);
    for column in 4..9 {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for tried in &report.strategies {
        table.add_row(row(tried, report.options.processes));
    }
    table
}

fn row(tried: &Tried, processes: usize) -> Vec<String> {
    let figure = |value: Option<f64>| match value {
        Some(value) if value >= 0.05 => format!("{value:.1}"),
        _ => "–".to_owned(),
    };
    let retries: u64 = tried.rounds.iter().map(|round| round.cost.retries).sum();
    vec![
        tried.name.clone(),
        tried.claim.with(processes).in_words(),
        tried.finding.in_words(),
        if tried.finding.is_as_claimed { "yes".to_owned() } else { "NO".to_owned() },
        tried.median_ms().map_or_else(String::new, |ms| format!("{ms:.0}")),
        figure(tried.median_write_back_ms()),
        figure(tried.redis_round_trips_per_success()),
        figure(tried.sql_statements_per_success()),
        if retries == 0 { "–".to_owned() } else { retries.to_string() },
    ]
}

fn verdict(report: &Report) -> String {
    let contradictions: Vec<_> = report.contradictions().collect();
    if contradictions.is_empty() {
        return format!("All {} strategies are what they claim.\n", report.strategies.len());
    }
    let mut text = String::from("NOT AS CLAIMED:\n");
    for (strategy, words) in contradictions {
        text.push_str(&format!("  {strategy} {words}\n"));
    }
    text
}
