//! Lines, boxes and letters, in pixels from the upper left corner. plotters writes the SVG.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea as _};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color as _, IntoFont as _, RGBColor, TextStyle};

use super::Failure;
use super::palette::{GRID, INK};

pub(super) const TEXT_SIZE: i32 = 13;
const TITLE_SIZE: i32 = 16;

/// On which side of its point a text stands.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Before,
    Around,
    After,
}

/// Where something is: from the left, from the top.
pub(super) type Point = (f64, f64);

pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

/// A picture of this size, with its title, on which `draw` draws.
pub(super) fn picture(
    (width, height): (u32, u32),
    title: &str,
    draw: impl FnOnce(&Canvas<'_>) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        let canvas = Canvas { area };
        canvas.write((0.0, 12.0), Side::After, INK, TITLE_SIZE, title)?;
        draw(&canvas)?;
        canvas.area.present()?;
    }
    Ok(svg)
}

impl Canvas<'_> {
    pub(super) fn text(&self, at: Point, side: Side, colour: RGBColor, text: &str) -> Result<(), Failure> {
        self.write(at, side, colour, TEXT_SIZE, text)
    }

    fn write(&self, at: Point, side: Side, colour: RGBColor, size: i32, text: &str) -> Result<(), Failure> {
        let across = match side {
            Side::Before => HPos::Right,
            Side::Around => HPos::Center,
            Side::After => HPos::Left,
        };
        let style = TextStyle::from(("sans-serif", size).into_font())
            .color(&colour)
            .pos(Pos::new(across, VPos::Center));
        Ok(self.area.draw(&Text::new(text.to_owned(), pixels(at), style))?)
    }

    pub(super) fn bar(&self, from: Point, to: Point, colour: RGBColor) -> Result<(), Failure> {
        Ok(self.area.draw(&Rectangle::new([pixels(from), pixels(to)], colour.filled()))?)
    }

    pub(super) fn path(&self, points: &[Point], colour: RGBColor) -> Result<(), Failure> {
        let points: Vec<_> = points.iter().map(|point| pixels(*point)).collect();
        for point in &points {
            self.area.draw(&Circle::new(*point, 3, colour.filled()))?;
        }
        Ok(self.area.draw(&PathElement::new(points, colour.stroke_width(2)))?)
    }

    /// A line by which values are read.
    pub(super) fn rule(&self, from: Point, to: Point) -> Result<(), Failure> {
        Ok(self.area.draw(&PathElement::new(vec![pixels(from), pixels(to)], GRID.stroke_width(1)))?)
    }
}

fn pixels((across, down): Point) -> (i32, i32) {
    (pixel(across), pixel(down))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "it is inside the picture, and `as` puts it there if it is not"
)]
fn pixel(place: f64) -> i32 {
    place.round() as i32
}
