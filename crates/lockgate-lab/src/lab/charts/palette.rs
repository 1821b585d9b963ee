//! The colours: drawn as they are on white paper, and left to the page where there is one that may be dark.

use plotters::style::RGBColor;

use super::super::verdict::Verdict;

pub(super) const INK: RGBColor = RGBColor(0x1F, 0x23, 0x28);
pub(super) const FAINT: RGBColor = RGBColor(0x59, 0x63, 0x6E);
pub(super) const GRID: RGBColor = RGBColor(0xD1, 0xD9, 0xE0);
const EXACT: RGBColor = RGBColor(0x1A, 0x7F, 0x37);
const GAVE_UP: RGBColor = RGBColor(0x9A, 0x67, 0x00);
const HERE: RGBColor = RGBColor(0x09, 0x69, 0xDA);
const WRONG: RGBColor = RGBColor(0xCF, 0x22, 0x2E);
const SURPRISE: RGBColor = RGBColor(0x82, 0x50, 0xDF);

/// What each is called in the page's style sheet.
const IN_PAGE: [(RGBColor, &str); 8] = [
    (INK, "--ink"),
    (FAINT, "--faint"),
    (GRID, "--grid"),
    (EXACT, "--exact"),
    (GAVE_UP, "--gave-up"),
    (HERE, "--here"),
    (WRONG, "--wrong"),
    (SURPRISE, "--surprise"),
];

/// Told apart from each other on white and on black; each line has its name beside it as well.
const LINES: [RGBColor; 9] = [
    RGBColor(0x2F, 0x81, 0xF7),
    RGBColor(0xD9, 0x6C, 0x00),
    RGBColor(0x0F, 0x9D, 0x77),
    RGBColor(0xD0, 0x3B, 0x98),
    RGBColor(0x86, 0x66, 0xE8),
    RGBColor(0xA5, 0x8A, 0x00),
    RGBColor(0xE0, 0x4A, 0x4F),
    RGBColor(0x00, 0x9F, 0xC4),
    RGBColor(0x77, 0x80, 0x8C),
];

pub(super) fn of_verdict(verdict: Verdict) -> RGBColor {
    match verdict {
        Verdict::Exact => EXACT,
        Verdict::GaveUp => GAVE_UP,
        Verdict::ExactHere => HERE,
        Verdict::WrongAsClaimed => WRONG,
        Verdict::NotAsClaimed => SURPRISE,
    }
}

pub(super) fn of_line(number: usize) -> RGBColor {
    LINES.get(number % LINES.len()).copied().unwrap_or(INK)
}

/// With a white ground, for readers who would show it on black.
pub(super) fn on_paper(drawing: &str) -> String {
    let Some(end_of_tag) = drawing.find('>') else { return drawing.to_owned() };
    let (tag, rest) = drawing.split_at(end_of_tag + 1);
    format!("{tag}\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>{rest}")
}

/// With the page's colours in place of those of paper.
pub(super) fn in_page(drawing: &str) -> String {
    IN_PAGE.iter().fold(drawing.to_owned(), |drawing, (RGBColor(red, green, blue), variable)| {
        let (printed, of_page) =
            (format!("\"#{red:02X}{green:02X}{blue:02X}\""), format!("\"var({variable})\""));
        drawing.replace(&printed, &of_page)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_page_the_page_has_the_say() {
        let drawing = "<svg x=\"1\"><text fill=\"#1F2328\">a</text></svg>";
        assert_eq!(in_page(drawing), "<svg x=\"1\"><text fill=\"var(--ink)\">a</text></svg>");
        assert!(on_paper(drawing).starts_with("<svg x=\"1\">\n<rect "));
    }
}
