//! One figure for each strategy, as a bar with its name on the left and its value at the end.

use super::Failure;
use super::canvas::{Canvas, Side, TEXT_SIZE, picture};
use super::palette::{FAINT, INK, of_verdict};
use super::scale::{Scale, figure};
use crate::lab::verdict::Verdict;

/// Narrow enough to be read on a phone.
const WIDTH: u32 = 560;
const TOP: f64 = 32.0;
const ROW: f64 = 24.0;
const BAR: f64 = 15.0;
const NAMES: f64 = 178.0;
/// What is kept for the value of the longest bar.
const VALUES: f64 = 82.0;
/// For the ticks.
const BELOW: f64 = 26.0;

pub(super) struct Bar {
    pub(super) label: String,
    pub(super) value: f64,
    pub(super) verdict: Verdict,
}

pub(super) struct BarChart<'a> {
    pub(super) title: &'a str,
    pub(super) unit: &'static str,
    pub(super) bars: &'a [Bar],
}

impl BarChart<'_> {
    pub(super) fn scale(&self) -> Scale {
        Scale::of(self.bars.iter().map(|bar| bar.value))
    }

    pub(super) fn draw(&self) -> Result<String, Failure> {
        let rows = u32::try_from(self.bars.len())?;
        let legend: Vec<Verdict> = Verdict::ALL.into_iter().filter(|verdict| self.shows(*verdict)).collect();
        let bottom = TOP + ROW * f64::from(rows);
        let height = 32 + 24 * rows + 26 + 20 * u32::try_from(legend.len())? + 4;
        let scale = self.scale();
        picture((WIDTH, height), self.title, |canvas| {
            self.draw_ticks(canvas, &scale, bottom)?;
            let mut middle = TOP + ROW / 2.0;
            for bar in self.bars {
                self.draw_bar(canvas, &scale, bar, middle)?;
                middle += ROW;
            }
            draw_legend(canvas, &legend, bottom + BELOW + 10.0)
        })
    }

    fn shows(&self, verdict: Verdict) -> bool {
        self.bars.iter().any(|bar| bar.verdict == verdict)
    }

    fn draw_ticks(&self, canvas: &Canvas<'_>, scale: &Scale, bottom: f64) -> Result<(), Failure> {
        for tick in scale.ticks() {
            let across = across(scale, tick);
            canvas.rule((across, TOP), (across, bottom + 4.0))?;
            canvas.text((across, bottom + 14.0), Side::Around, FAINT, &figure(tick))?;
        }
        Ok(())
    }

    fn draw_bar(&self, canvas: &Canvas<'_>, scale: &Scale, bar: &Bar, middle: f64) -> Result<(), Failure> {
        let colour = of_verdict(bar.verdict);
        // Even the shortest one can be seen.
        let end = across(scale, bar.value).max(NAMES + 2.0);
        canvas.text((6.0, middle), Side::Around, colour, bar.verdict.symbol())?;
        canvas.text((18.0, middle), Side::After, INK, &bar.label)?;
        canvas.bar((NAMES, middle - BAR / 2.0), (end, middle + BAR / 2.0), colour)?;
        let value = format!("{} {}", figure(bar.value), self.unit);
        canvas.text((end + 6.0, middle), Side::After, INK, value.trim_end())
    }
}

fn across(scale: &Scale, value: f64) -> f64 {
    NAMES + scale.place(value) * (f64::from(WIDTH) - NAMES - VALUES)
}

/// What the colours mean, one below the other, each with its symbol.
fn draw_legend(canvas: &Canvas<'_>, legend: &[Verdict], top: f64) -> Result<(), Failure> {
    let mut middle = top;
    for verdict in legend {
        let (colour, half) = (of_verdict(*verdict), f64::from(TEXT_SIZE) / 2.0);
        canvas.bar((NAMES, middle - half), (NAMES + 2.0 * half, middle + half), colour)?;
        let words = format!("{} {}", verdict.symbol(), verdict.word());
        canvas.text((NAMES + 2.0 * half + 8.0, middle), Side::After, INK, &words)?;
        middle += 20.0;
    }
    Ok(())
}
