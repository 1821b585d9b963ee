//! Any text, as every database can keep it.

use std::borrow::Cow;

/// Writes a backslash as two and a NUL as `\0`: PostgreSQL has no text with a NUL in it.
pub(in crate::ledger) fn text(text: &str) -> String {
    if text.contains(['\\', '\0']) {
        return text.replace('\\', "\\\\").replace('\0', "\\0");
    }
    text.to_owned()
}

/// Undoes [`text`].
pub(in crate::ledger) fn read_text(written: &str) -> Cow<'_, str> {
    if !written.contains('\\') {
        return Cow::Borrowed(written);
    }
    let mut read = String::with_capacity(written.len());
    let mut letters = written.chars();
    while let Some(letter) = letters.next() {
        read.push(match letter {
            '\\' if letters.next() == Some('0') => '\0',
            letter => letter,
        });
    }
    Cow::Owned(read)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_can_be_read(original in "[\\\\0\0a]*") {
            let written = text(&original);
            prop_assert!(!written.contains('\0'));
            prop_assert_eq!(read_text(&written), original);
        }
    }
}
