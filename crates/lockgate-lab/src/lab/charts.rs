//! Pictures of a report, each an SVG that stands for itself.
//!
//! **Promise:** the same report makes the same pictures, byte by byte. A picture needs nothing from outside: no font, no style
//! sheet, no script. What a colour says is also said by a symbol or a name. Nothing that a report may hold (no strategy, nobody
//! who got one, no growth) keeps a picture from being drawn; what would be empty is left out.
//!
//! ```text
//! scale    where a value stands, and which lines are drawn
//! canvas   lines, boxes and letters; plotters writes the SVG
//! bars     one figure for each strategy
//! lines    time against users
//! palette  the colours, and what a page in the dark makes of them
//! ```

use super::Failure;
use super::report::{Family, Report, Tried};
use super::verdict::Verdict;

mod bars;
mod canvas;
mod lines;
mod palette;
mod scale;

use self::bars::{Bar, BarChart};
use self::lines::{Line, LineChart};
use self::scale::Scale;

/// A picture.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What its file is called, without the ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    drawing: String,
}

/// Strategies that one picture of growth shows together, and what they have in common.
const GROUPS: [(&str, &str, &[Family]); 5] = [
    ("growth-in-process", "Nothing, or something inside one process", &[Family::Nothing, Family::InProcess]),
    ("growth-database", "The database decides", &[Family::Database]),
    ("growth-lock", "A lock in Redis", &[Family::RedisLock]),
    ("growth-redis", "Redis decides", &[Family::RedisDecides, Family::Lockgate]),
    ("growth-queue", "A queue", &[Family::Queue]),
];

/// All pictures that a report is good for.
///
/// # Errors
///
/// When a picture cannot be drawn.
pub fn charts(report: &Report) -> Result<Vec<Chart>, Failure> {
    let mut all = Vec::new();
    all.extend(time(report)?);
    all.extend(growth(report)?);
    all.extend(cost(
        report,
        "round-trips",
        "Round trips to Redis for each user who got one",
        Tried::redis_round_trips_per_success,
    )?);
    all.extend(cost(
        report,
        "sql",
        "SQL statements for each user who got one",
        Tried::sql_statements_per_success,
    )?);
    Ok(all)
}

impl Chart {
    /// As a file of its own, on white paper.
    #[must_use]
    pub fn standalone(&self) -> String {
        palette::on_paper(&self.drawing)
    }

    /// As a part of a page, in the page's colours.
    pub(super) fn inline(&self) -> String {
        palette::in_page(&self.drawing)
    }
}

fn time(report: &Report) -> Result<Option<Chart>, Failure> {
    let title = "Time until everybody had an answer";
    let how = "The median over the rounds, in milliseconds; shorter is faster. Being fast is worth nothing to those that are wrong.";
    bar_chart(report, "time", title, how, "ms", Tried::median_ms)
}

fn cost(
    report: &Report,
    name: &str,
    title: &str,
    figure: impl Fn(&Tried) -> Option<f64>,
) -> Result<Option<Chart>, Failure> {
    let how = "What a server is asked is what it has to do, and what everybody waits for. Strategies that ask nothing are left out.";
    bar_chart(report, name, title, how, "", figure)
}

fn bar_chart(
    report: &Report,
    name: &str,
    title: &str,
    how: &str,
    unit: &'static str,
    figure: impl Fn(&Tried) -> Option<f64>,
) -> Result<Option<Chart>, Failure> {
    let bar = |tried: &Tried| {
        let value = figure(tried).filter(|value| value.is_finite() && *value > 0.0)?;
        Some(Bar { label: tried.name.clone(), value, verdict: Verdict::of(tried) })
    };
    let bars: Vec<Bar> = report.strategies.iter().filter_map(bar).collect();
    if bars.is_empty() {
        return Ok(None);
    }
    let chart = BarChart { title, unit, bars: &bars };
    let caption = with_scale(how, chart.scale().is_log());
    let drawing = chart.draw()?;
    Ok(Some(Chart { name: name.to_owned(), title: title.to_owned(), caption, drawing }))
}

/// A picture for each group, all on the same scales, so that they compare.
fn growth(report: &Report) -> Result<Vec<Chart>, Failure> {
    let points = || report.strategies.iter().flat_map(|tried| &tried.growth);
    let times = Scale::of(points().map(|point| point.median_ms));
    #[expect(clippy::cast_precision_loss, reason = "a crowd is far below 2^53")]
    let users = Scale::of(points().map(|point| point.users as f64));
    let mut charts = Vec::new();
    for (name, title, families) in GROUPS {
        let of_group = report.strategies.iter().filter(|tried| families.contains(&tried.family));
        let lines: Vec<Line> = of_group.filter(|tried| !tried.growth.is_empty()).map(Line::of).collect();
        if lines.is_empty() {
            continue;
        }
        let how =
            "Time in milliseconds against the number of users. All pictures of growth have the same scales.";
        let caption = with_scale(how, times.is_log());
        let drawing = LineChart { title, times: &times, users: &users, lines: &lines }.draw()?;
        charts.push(Chart { name: name.to_owned(), title: title.to_owned(), caption, drawing });
    }
    Ok(charts)
}

fn with_scale(how: &str, is_log: bool) -> String {
    if is_log {
        return format!("{how} Mind the scale: from one power of ten to the next it is ten times as much.");
    }
    how.to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn names(report: &Report) -> Vec<String> {
        charts(report).unwrap().into_iter().map(|chart| chart.name).collect()
    }

    #[test]
    fn every_figure_has_its_picture_and_every_strategy_is_in_it() {
        let report = sample::report();
        assert_eq!(
            names(&report),
            ["time", "growth-in-process", "growth-database", "growth-lock", "round-trips", "sql"]
        );
        for chart in charts(&report).unwrap() {
            let svg = chart.standalone();
            assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
            let shown = report.strategies.iter().filter(|tried| svg.contains(&tried.name)).count();
            let expected = match chart.name.as_str() {
                "growth-database" | "growth-in-process" => 2,
                growth if growth.starts_with("growth-") => 1,
                _ => 5,
            };
            assert_eq!(shown, expected, "{}", chart.name);
        }
    }

    #[test]
    fn a_picture_says_with_a_symbol_what_it_says_with_a_colour() {
        let all = charts(&sample::report()).unwrap();
        for verdict in Verdict::ALL {
            let svg = all[0].standalone();
            assert!(svg.contains(verdict.symbol()) && svg.contains(verdict.word()), "{verdict:?}");
        }
    }

    #[test]
    fn what_is_missing_is_left_out_and_does_no_harm() {
        let mut report = sample::report();
        report.strategies.truncate(1);
        assert_eq!(names(&report), ["time", "growth-database", "round-trips", "sql"]);
        report.strategies[0].growth.clear();
        assert_eq!(names(&report), ["time", "round-trips", "sql"]);
        for round in &mut report.strategies[0].rounds {
            round.answers.got = 0;
        }
        assert_eq!(names(&report), ["time"]);
        report.strategies[0].rounds[0].elapsed_ms = f64::INFINITY;
        report.strategies[0].rounds[1].elapsed_ms = f64::NAN;
        names(&report);
        report.strategies.clear();
        assert_eq!(names(&report), [""; 0]);
    }

    #[test]
    fn names_are_text_and_not_markup() {
        let mut report = sample::report();
        report.strategies[0].name = "<b>&\"".to_owned();
        for chart in charts(&report).unwrap() {
            assert!(!chart.standalone().contains("<b>"), "{}", chart.name);
        }
    }
}
