//! Text that stays text, whatever is in it: between tags and in quoted attributes.

use std::fmt::{self, Write as _};

/// Shown as it is, never taken for markup.
pub(super) struct Text<'a>(pub(super) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Nothing that a terminal or a browser would act on.
                letter if letter.is_control() => f.write_char(' ')?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_the_text() {
        let shown = Text("<a href=\"x\" b='y'>&\u{7}\u{e9}</a>").to_string();
        assert_eq!(shown, "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp; \u{e9}&lt;/a&gt;");
    }
}
