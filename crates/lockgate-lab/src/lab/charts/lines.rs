//! Time against users: a line for each strategy, with its name at the end.

use super::Failure;
use super::canvas::{Canvas, Point, Side, picture};
use super::palette::{FAINT, INK, of_line};
use super::scale::{Scale, figure};
use crate::lab::report::Tried;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = WIDTH - 178.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = HEIGHT - 44.0;
/// Two names are no closer than this.
const NAME_HEIGHT: f64 = 16.0;

/// One strategy's line.
pub(super) struct Line {
    name: String,
    /// Users and milliseconds, fewest users first.
    points: Vec<(f64, f64)>,
}

impl Line {
    #[expect(clippy::cast_precision_loss, reason = "a crowd is far below 2^53")]
    pub(super) fn of(tried: &Tried) -> Self {
        let points = tried.growth.iter().map(|point| (point.users as f64, point.median_ms)).collect();
        Self { name: tried.name.clone(), points }
    }
}

pub(super) struct LineChart<'a> {
    pub(super) title: &'a str,
    pub(super) times: &'a Scale,
    pub(super) users: &'a Scale,
    pub(super) lines: &'a [Line],
}

impl LineChart<'_> {
    pub(super) fn draw(&self) -> Result<String, Failure> {
        picture((560, 320), self.title, |canvas| {
            self.draw_ticks(canvas)?;
            let paths: Vec<Vec<Point>> = self.lines.iter().map(|line| self.path(line)).collect();
            for (number, path) in paths.iter().enumerate() {
                canvas.path(path, of_line(number))?;
            }
            self.draw_names(canvas, &paths)
        })
    }

    fn draw_ticks(&self, canvas: &Canvas<'_>) -> Result<(), Failure> {
        for tick in self.times.ticks() {
            let down = self.down(tick);
            canvas.rule((LEFT, down), (RIGHT, down))?;
            canvas.text((LEFT - 6.0, down), Side::Before, FAINT, &figure(tick))?;
        }
        for tick in self.users.ticks() {
            let across = self.across(tick);
            canvas.rule((across, BOTTOM), (across, BOTTOM + 4.0))?;
            canvas.text((across, BOTTOM + 14.0), Side::Around, FAINT, &figure(tick))?;
        }
        canvas.text((f64::midpoint(LEFT, RIGHT), BOTTOM + 32.0), Side::Around, FAINT, "users")?;
        canvas.text((LEFT - 6.0, TOP - 2.0), Side::Before, FAINT, "ms")
    }

    fn path(&self, line: &Line) -> Vec<Point> {
        line.points.iter().map(|(users, time)| (self.across(*users), self.down(*time))).collect()
    }

    fn draw_names(&self, canvas: &Canvas<'_>, paths: &[Vec<Point>]) -> Result<(), Failure> {
        let ends: Vec<f64> = paths.iter().map(|path| path.last().map_or(BOTTOM, |end| end.1)).collect();
        for (number, (line, down)) in self.lines.iter().zip(spread(&ends)).enumerate() {
            let colour = of_line(number);
            let end = paths.get(number).and_then(|path| path.last()).copied().unwrap_or((RIGHT, down));
            // From the end of the line to its name, which may have had to give way.
            canvas.rule((end.0 + 4.0, end.1), (RIGHT + 18.0, down))?;
            canvas.bar((RIGHT + 18.0, down - 4.0), (RIGHT + 26.0, down + 4.0), colour)?;
            canvas.text((RIGHT + 31.0, down), Side::After, INK, &line.name)?;
        }
        Ok(())
    }

    fn across(&self, users: f64) -> f64 {
        LEFT + self.users.place(users) * (RIGHT - LEFT)
    }

    fn down(&self, time: f64) -> f64 {
        BOTTOM - self.times.place(time) * (BOTTOM - TOP - 14.0)
    }
}

/// Moves names apart that would stand on each other, in the order of their lines, as little as is needed to go on downwards;
/// then all of them up if the last would stand below the picture.
fn spread(wanted: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    let place = |index: &usize| wanted.get(*index).copied().unwrap_or_default();
    order.sort_by(|one, other| place(one).total_cmp(&place(other)));
    let (mut places, mut next_free) = (wanted.to_vec(), f64::MIN);
    for index in &order {
        let down = place(index).max(next_free);
        if let Some(place) = places.get_mut(*index) {
            *place = down;
        }
        next_free = down + NAME_HEIGHT;
    }
    let mut lowest = HEIGHT - NAME_HEIGHT;
    for index in order.iter().rev() {
        if let Some(place) = places.get_mut(*index) {
            *place = place.min(lowest);
            lowest = *place - NAME_HEIGHT;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_order_and_their_distance() {
        let places = spread(&[100.0, 98.0, 20.0, 99.0]);
        assert_eq!(places, [130.0, 98.0, 20.0, 114.0]);
        let crowded = spread(&[310.0; 5]);
        let mut sorted = crowded.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|two| two[1] - two[0] >= NAME_HEIGHT), "{crowded:?}");
        assert!(sorted[4] <= HEIGHT);
        assert_eq!(spread(&[]), [0.0; 0]);
    }
}
