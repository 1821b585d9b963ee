//! The report for people, as one page.
//!
//! **Promise:** the page is a single file that asks nobody for anything: no font, no script, no picture from elsewhere. It can be
//! read in the dark, on a phone and on paper, by somebody who has never heard of Redis. Everything that a [`Report`] holds is on
//! it, and the same report makes the same page. Whatever a report says (a database's version, an error) is shown as text and
//! never taken for markup.
//!
//! ```text
//! escape   text that stays text
//! words    the introduction and the glossary
//! glance   the table that one sees first
//! rounds   everything that was counted, to be unfolded
//! ```

use std::fmt::Write as _;
use std::time::Duration;

use super::Failure;
use super::charts::{Chart, charts};
use super::report::{Report, Service};
use super::verdict::Verdict;

mod escape;
mod glance;
mod rounds;
mod words;

use self::escape::Text;

const STYLE: &str = include_str!("html/style.css");

/// The whole page.
///
/// # Errors
///
/// When a chart cannot be drawn.
pub fn html(report: &Report) -> Result<String, Failure> {
    let charts = charts(report)?;
    let mut page = String::new();
    let heading = format!("{} ways to share something limited", report.strategies.len());
    write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Lockgate lab: {heading}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>{heading}</h1>\n"
    )?;
    page.push_str(&verdict(report)?);
    page.push_str(&words::introduction(report));
    page.push_str(&glance::table(report)?);
    page.push_str(&pictures(&charts)?);
    page.push_str(&left_out(report)?);
    page.push_str(&rounds::all(report)?);
    page.push_str(&conditions(report)?);
    page.push_str(&words::glossary()?);
    page.push_str("</body>\n</html>\n");
    Ok(page)
}

/// Whether the lab found what was claimed.
fn verdict(report: &Report) -> Result<String, Failure> {
    let mut text = String::new();
    let mut differing = report.contradictions().peekable();
    if differing.peek().is_none() {
        let (class, symbol) = (Verdict::Exact.class(), Verdict::Exact.symbol());
        let all = report.strategies.len();
        writeln!(
            text,
            "<div class=\"banner {class}\"><strong>{symbol} All {all} strategies are what they claim: the exact ones were \
             exact in every round, and the others failed in the way that they say.</strong></div>"
        )?;
        return Ok(text);
    }
    let (class, symbol) = (Verdict::NotAsClaimed.class(), Verdict::NotAsClaimed.symbol());
    writeln!(text, "<div class=\"banner {class}\"><strong>{symbol} Not as claimed:</strong><ul>")?;
    for (strategy, words) in differing {
        writeln!(text, "<li><code>{}</code> {}</li>", Text(strategy), Text(words))?;
    }
    text.push_str("</ul></div>\n");
    Ok(text)
}

/// The wide ones by themselves, those of growth side by side.
fn pictures(charts: &[Chart]) -> Result<String, Failure> {
    let is_growth = |chart: &&Chart| chart.name.starts_with("growth-");
    let mut text = String::from("<h2>In pictures</h2>\n");
    for chart in charts.iter().filter(|chart| !is_growth(chart)) {
        figure(&mut text, chart, "wide")?;
    }
    if charts.iter().any(|chart| is_growth(&chart)) {
        text.push_str("<h2>What happens when more people come</h2>\n<div class=\"charts\">\n");
        for chart in charts.iter().filter(is_growth) {
            figure(&mut text, chart, "growth")?;
        }
        text.push_str("</div>\n");
    }
    Ok(text)
}

fn figure(text: &mut String, chart: &Chart, class: &str) -> Result<(), Failure> {
    let (name, title) = (Text(&chart.name), Text(&chart.title));
    let drawing = chart.inline().replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{title}\" "), 1);
    let caption = Text(&chart.caption);
    writeln!(
        text,
        "<figure class=\"{class}\" id=\"{name}\">\n{drawing}\n<figcaption>{caption}</figcaption>\n</figure>"
    )?;
    Ok(())
}

fn left_out(report: &Report) -> Result<String, Failure> {
    let mut text = String::new();
    if report.skipped.is_empty() {
        return Ok(text);
    }
    text.push_str("<h2>Left out</h2>\n<ul>\n");
    for skipped in &report.skipped {
        writeln!(text, "<li><code>{}</code>: {}</li>", Text(&skipped.strategy), Text(&skipped.why))?;
    }
    text.push_str("</ul>\n");
    Ok(text)
}

/// Where and how it was measured: without it, no figure means anything.
fn conditions(report: &Report) -> Result<String, Failure> {
    let (options, machine) = (&report.options, &report.machine);
    let memory = machine.memory_bytes.map(|bytes| format!(", {} MiB of memory", bytes / 1_048_576));
    let processor = machine.processor.as_ref().map(|processor| format!(", {processor}"));
    let sizes: Vec<_> = options.growth.iter().map(ToString::to_string).collect();
    let facts = [
        ("Crowd", format!("{} users want one of {}", options.users, options.stock)),
        ("Processes", format!("{}, serving {} requests at a time", options.processes, options.in_flight)),
        (
            "Rounds",
            format!("{} of each strategy, and one each with these crowds: {}", options.rounds, list(&sizes)),
        ),
        ("Stuck", format!("after {:.1} s without an answer for anybody", options.limit_ms / 1_000.0)),
        ("Redis", report.redis.as_ref().map_or_else(|| "none".to_owned(), service)),
        ("Database", format!("{}, {} connections", service(&report.database), options.connections)),
        (
            "Machine",
            format!("{} cores{}{}", machine.cores, processor.unwrap_or_default(), memory.unwrap_or_default()),
        ),
        ("System", machine.os.clone()),
        ("When", format!("{}, for {:.0} s", moment(report.began_at_us), report.took_ms / 1_000.0)),
        ("By", format!("Lockgate {}", report.lockgate_version)),
    ];
    let mut text = String::from("<h2>How it was measured</h2>\n<dl>\n");
    for (name, fact) in facts {
        writeln!(text, "<dt>{name}</dt><dd>{}</dd>", Text(&fact))?;
    }
    text.push_str(
        "</dl>\n<p class=\"faint\">Times compare within this page, not with those of another machine.</p>\n",
    );
    Ok(text)
}

fn list(words: &[String]) -> String {
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

fn service(service: &Service) -> String {
    let whose = if service.is_own { "started by the lab" } else { "the user's own" };
    format!("{} {}, {whose}", service.name, service.version)
}

fn moment(micros: u64) -> String {
    let since_1970 = Duration::from_micros(micros).as_secs();
    let moment =
        i64::try_from(since_1970).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    moment.map_or_else(|| "at an unknown time".to_owned(), |moment| moment.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn everything_of_a_report_is_on_the_page() {
        let page = html(&sample::report()).unwrap();
        for expected in [
            "5 ways to share",
            "400 users want one of 300",
            "2026-01-01T00:00:00Z",
            "Redis 8.0.1, started by the lab",
            "the user&#39;s own, 32 connections",
            "8192 MiB",
            "A Processor &amp; Sons",
            "An OS",
            "absent</code>: there is no such server",
            "The right one",
            "fails: lost updates",
            "exact, or gives up",
            "lost updates, oversold (2 of 2)",
            "5 sold beyond the stock",
            "noted of &lt;hasty&gt;",
            "63.1",
            "42.2",
            "894",
            "1192",
            "Not as claimed",
        ] {
            assert!(page.contains(expected), "not on the page: {expected}");
        }
        for verdict in Verdict::ALL {
            let badge = format!("badge {}\">{} {}", verdict.class(), verdict.symbol(), verdict.word());
            assert!(page.contains(&badge), "{badge}");
        }
    }

    #[test]
    fn there_is_a_picture_of_every_chart() {
        let report = sample::report();
        let (page, charts) = (html(&report).unwrap(), charts(&report).unwrap());
        assert_eq!(page.matches("<svg role=\"img\"").count(), charts.len());
        assert!(charts.iter().all(|chart| page.contains(&format!("id=\"{}\"", chart.name))));
    }

    #[test]
    fn what_a_report_says_is_text() {
        let page = html(&sample::report()).unwrap();
        assert!(!page.contains("<script"), "the version of the database");
        assert!(page.contains("17 &lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;"));
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        let page = html(&sample::report()).unwrap().replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for reference in ["http://", "https://", "//cdn", "@import", "url(", "<link", "src="] {
            assert!(!page.contains(reference), "{reference}");
        }
    }

    #[test]
    fn the_same_report_makes_the_same_page() {
        let report = sample::report();
        let read_back: Report = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
        assert_eq!(html(&report).unwrap(), html(&read_back).unwrap());
    }

    #[test]
    fn an_empty_report_makes_a_page_too() {
        let mut report = sample::report();
        report.strategies.truncate(1);
        report.strategies[0].growth.clear();
        report.strategies[0].rounds.clear();
        report.redis = None;
        report.machine.memory_bytes = None;
        assert!(html(&report).unwrap().contains("<dt>Redis</dt><dd>none</dd>"));
        report.strategies.clear();
        assert!(html(&report).unwrap().contains("0 ways to share"));
    }
}
