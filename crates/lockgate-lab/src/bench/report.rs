//! JSON lines as they come, or a table at the end.

use std::io::{self, Write};

use comfy_table::{Table, presets};
use serde::Serialize;

use super::frame::{Case, Contender, Role};
use super::slice::{HandOver, Slice};
use super::yardstick::doubt;

/// Where results go.
pub(super) struct Report<W> {
    as_json: bool,
    out: W,
    yardsticks: Vec<f64>,
}

/// A finished slice, for [`Report::slice`].
pub(super) struct SliceLine<'a> {
    pub(super) case: &'a Case<'a>,
    pub(super) contender: &'a dyn Contender,
    pub(super) round: u32,
    pub(super) is_warm_up: bool,
    pub(super) slice: &'a Slice,
}

/// A figure over all rounds: the one in the middle, and the two at the ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) median: f64,
    min: f64,
    pub(super) max: f64,
}

impl Spread {
    pub(super) fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut figures: Vec<_> = figures.collect();
        figures.sort_by(f64::total_cmp);
        let at = |place: usize| figures.get(place).copied().unwrap_or(0.0);
        let middle = at(figures.len() / 2).midpoint(at(figures.len().saturating_sub(1) / 2));
        Self { median: middle, min: at(0), max: at(figures.len().saturating_sub(1)) }
    }
}

/// A figure by itself, and what it should be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) value: f64,
    pub(super) bar: Option<Bar>,
}

/// What is expected of a figure on the reference machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bar {
    AtLeast(f64),
    AtMost(f64),
}

impl Figure {
    fn is_met(&self) -> Option<bool> {
        self.bar.map(|bar| match bar {
            Bar::AtLeast(least) => self.value >= least,
            Bar::AtMost(most) => self.value <= most,
        })
    }

    fn expected(&self) -> Option<String> {
        self.bar.map(|bar| match bar {
            Bar::AtLeast(least) => format!("≥ {}", readable(least)),
            Bar::AtMost(most) => format!("≤ {}", readable(most)),
        })
    }
}

/// As many digits as somebody reads.
fn readable(figure: f64) -> String {
    if figure.abs() < 100.0 { format!("{figure:.2}") } else { format!("{figure:.0}") }
}

/// One contender over all rounds.
#[derive(Debug, Serialize)]
struct Summary {
    contender: &'static str,
    role: Role,
    per_second: Spread,
    /// Per round, then the median: what the machine did to one round it did to both.
    ratio_to_limit: Spread,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    client_commands: Option<f64>,
    server_us: Option<f64>,
    fairness: f64,
    #[serde(flatten)]
    hand_over: Option<HandOver>,
    /// Of all rounds.
    violations: Option<u64>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Line<'a> {
    Slice {
        case: &'a str,
        tasks: usize,
        contender: &'a str,
        role: Role,
        round: u32,
        warm_up: bool,
        #[serde(flatten)]
        slice: &'a Slice,
    },
    Case {
        case: &'a str,
        tasks: usize,
        rounds: usize,
        results: &'a [Summary],
    },
    Figure {
        name: &'a str,
        value: f64,
        expected: Option<String>,
        is_met: Option<bool>,
    },
    Noise {
        warning: Option<String>,
    },
}

impl<W: Write> Report<W> {
    pub(super) fn new(as_json: bool, out: W) -> Self {
        Self { as_json, out, yardsticks: Vec::new() }
    }

    pub(super) fn slice(&mut self, line: &SliceLine<'_>) -> io::Result<()> {
        let SliceLine { case, contender, round, is_warm_up, slice } = line;
        self.yardsticks.push(slice.yardstick_us);
        let round_name = if *is_warm_up { "warm-up".to_owned() } else { format!("round {round}") };
        eprintln!("{} · {round_name} · {}: {:.0}/s", case.name, contender.name(), slice.per_second);
        self.json_line(&Line::Slice {
            case: &case.name,
            tasks: case.tasks,
            contender: contender.name(),
            role: contender.role(),
            round: *round,
            warm_up: *is_warm_up,
            slice,
        })
    }

    /// `rounds` holds one slice per contender, in the order of the case.
    pub(super) fn case(&mut self, case: &Case<'_>, rounds: &[Vec<Slice>]) -> io::Result<()> {
        let results: Vec<_> =
            (0..case.contenders.len()).map(|place| summarize(case, rounds, place)).collect();
        let line =
            Line::Case { case: &case.name, tasks: case.tasks, rounds: rounds.len(), results: &results };
        self.json_line(&line)?;
        if !self.as_json {
            writeln!(
                self.out,
                "\n{} ({} tasks, {} rounds)\n{}",
                case.name,
                case.tasks,
                rounds.len(),
                table(&results)
            )?;
        }
        Ok(())
    }

    /// Figures that are no slices: what was found, and what was expected.
    pub(super) fn figures(&mut self, figures: &[Figure]) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(["figure", "found", "expected", "met"]);
        for figure in figures {
            let (expected, is_met) = (figure.expected(), figure.is_met());
            let met = is_met.map_or("–", |is_met| if is_met { "yes" } else { "no" });
            let shown = expected.clone().unwrap_or("–".to_owned());
            table.add_row([figure.name, &readable(figure.value), &shown, met]);
            self.json_line(&Line::Figure { name: figure.name, value: figure.value, expected, is_met })?;
        }
        if !self.as_json {
            writeln!(self.out, "\n{table}")?;
        }
        Ok(())
    }

    /// Says at the end whether the machine was quiet.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let warning = doubt(&self.yardsticks);
        if let Some(warning) = &warning {
            eprintln!("warning: {warning}");
        }
        self.json_line(&Line::Noise { warning })
    }

    fn json_line(&mut self, line: &Line<'_>) -> io::Result<()> {
        if !self.as_json {
            return Ok(());
        }
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }
}

fn summarize(case: &Case<'_>, rounds: &[Vec<Slice>], place: usize) -> Summary {
    let contender = case.contenders[place].as_ref();
    let slices = || rounds.iter().map(|slices| &slices[place]);
    let median = |figure: fn(&Slice) -> f64| Spread::of(slices().map(figure)).median;
    let median_if_known = |figure: fn(&Slice) -> Option<f64>| {
        let known: Option<Vec<f64>> = slices().map(figure).collect();
        known.map(|figures| Spread::of(figures.into_iter()).median)
    };
    Summary {
        contender: contender.name(),
        role: contender.role(),
        per_second: Spread::of(slices().map(|slice| slice.per_second)),
        ratio_to_limit: Spread::of(
            rounds.iter().map(|slices| slices[place].per_second / slices[0].per_second),
        ),
        p50_us: median(|slice| slice.p50_us),
        p99_us: median(|slice| slice.p99_us),
        max_us: slices().map(|slice| slice.max_us).fold(0.0, f64::max),
        client_commands: median_if_known(|slice| slice.client_commands),
        server_us: median_if_known(|slice| slice.server_us),
        fairness: median(|slice| slice.fairness),
        hand_over: hand_over_in_the_middle(slices()),
        violations: slices().map(|slice| slice.violations).sum(),
    }
}

/// The medians over all rounds; the longest gap is the longest of all.
fn hand_over_in_the_middle<'a>(slices: impl Iterator<Item = &'a Slice>) -> Option<HandOver> {
    let all: Vec<HandOver> = slices.map(|slice| slice.hand_over).collect::<Option<_>>()?;
    let median = |figure: fn(&HandOver) -> f64| Spread::of(all.iter().map(figure)).median;
    Some(HandOver {
        gap_mean_us: median(|round| round.gap_mean_us),
        gap_p50_us: median(|round| round.gap_p50_us),
        gap_p99_us: median(|round| round.gap_p99_us),
        gap_max_us: Spread::of(all.iter().map(|round| round.gap_max_us)).max,
        hold_mean_us: median(|round| round.hold_mean_us),
    })
}

fn table(results: &[Summary]) -> Table {
    let mut table = Table::new();
    // Markdown, so that a result can be pasted into the docs as it is.
    table.load_style(presets::ASCII_MARKDOWN);
    let hands_over = results.iter().any(|result| result.hand_over.is_some());
    let mut header = vec![
        "contender",
        "per second",
        "of the first",
        "(min–max)",
        "p50 µs",
        "p99 µs",
        "max µs",
        "commands/op",
        "Redis µs/op",
        "fairness",
    ];
    if hands_over {
        header.extend(["gap mean µs", "p50", "p99", "hold µs"]);
    }
    let has_looked = results.iter().any(|result| result.violations.is_some());
    if has_looked {
        header.push("violations");
    }
    table.set_header(header);
    for result in results {
        let mut row = common_columns(result);
        if hands_over {
            row.extend(hand_over_columns(result.hand_over));
        }
        if has_looked {
            row.push(result.violations.map_or("–".to_owned(), |violations| violations.to_string()));
        }
        table.add_row(row);
    }
    table
}

fn common_columns(result: &Summary) -> Vec<String> {
    vec![
        result.contender.to_owned(),
        format!("{:.0}", result.per_second.median),
        format!("{:.2}", result.ratio_to_limit.median),
        format!("{:.2}–{:.2}", result.ratio_to_limit.min, result.ratio_to_limit.max),
        format!("{:.1}", result.p50_us),
        format!("{:.1}", result.p99_us),
        format!("{:.0}", result.max_us),
        result.client_commands.map_or("–".to_owned(), |commands| format!("{commands:.3}")),
        result.server_us.map_or("–".to_owned(), |micros| format!("{micros:.1}")),
        format!("{:.2}", result.fairness),
    ]
}

fn hand_over_columns(hand_over: Option<HandOver>) -> [String; 4] {
    let Some(figures) = hand_over else { return ["–"; 4].map(str::to_owned) };
    [figures.gap_mean_us, figures.gap_p50_us, figures.gap_p99_us, figures.hold_mean_us]
        .map(|micros| format!("{micros:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_and_the_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!(spread, Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert!((Spread::of([4.0, 1.0, 2.0, 3.0].into_iter()).median - 2.5).abs() < 1e-9);
    }
}
