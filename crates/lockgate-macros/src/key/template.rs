//! The text of a key, cut into plain text and holes.
//!
//! A hole may hold any expression, with braces, quotes and colons of its own; so its end is counted, not searched.

/// A part of a key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'key> {
    /// As it stands; `{{` has become `{`.
    Text(&'key str),
    /// `{expression}`, or `{expression:spec}`, whose `spec` has its colon.
    Hole { expression: &'key str, spec: &'key str },
}

/// Cuts a key; the error says what to write instead.
pub(super) fn pieces(key: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = key;
    while let Some(at) = rest.find(['{', '}']) {
        let (text, braces) = rest.split_at(at);
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        let (piece, behind) = piece_at_brace(braces)?;
        pieces.push(piece);
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// The piece at the start of `braces`, and what comes behind it.
fn piece_at_brace(braces: &str) -> Result<(Piece<'_>, &str), String> {
    for doubled in ["{{", "}}"] {
        if let Some(behind) = braces.strip_prefix(doubled) {
            return Ok((Piece::Text(&braces[..1]), behind));
        }
    }
    match braces.strip_prefix('{') {
        Some(inside) => hole(inside).ok_or_else(|| is_never_closed(braces)),
        None => Err("`}` closes nothing; write `}}` for a brace that is meant as one".to_owned()),
    }
}

fn is_never_closed(hole: &str) -> String {
    format!(
        "`{hole}` has no closing brace; write `}}` behind the expression, or `{{{{` for a brace that is meant as one"
    )
}

/// The hole whose inside starts `text`, and what comes behind it. `None` when it does not end.
fn hole(text: &str) -> Option<(Piece<'_>, &str)> {
    let (expression, rest) = text.split_at(end_of_expression(text)?);
    let (spec, behind) = rest.split_once('}')?;
    Some((Piece::Hole { expression: expression.trim(), spec }, behind))
}

/// Where the hole's own `:` or `}` is.
fn end_of_expression(text: &str) -> Option<usize> {
    let mut open = Vec::new();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let next = rest.chars().next()?;
        at += match next {
            '(' | '[' | '{' => {
                open.push(next);
                1
            }
            '}' | ':' if open.is_empty() && !rest.starts_with("::") => return Some(at),
            ')' | ']' | '}' if open.pop() != Some(opening_of(next)) => return None,
            '"' | '\'' => length_of_quoted(rest)?,
            ':' if rest.starts_with("::") => 2,
            other => other.len_utf8(),
        };
    }
}

fn opening_of(closing: char) -> char {
    match closing {
        ')' => '(',
        ']' => '[',
        _ => '{',
    }
}

/// How long the string or character at the start of `text` is. `None` when it does not end.
fn length_of_quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    if quote == '\'' && is_lifetime(text) {
        return Some(1);
    }
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// `'a` rather than `'a'` or `'\n'`.
fn is_lifetime(text: &str) -> bool {
    let mut letters = text.chars().skip(1);
    letters.next() != Some('\\') && letters.next() != Some('\'')
}

#[cfg(test)]
mod tests {
    use super::Piece::{Hole, Text};
    use super::*;

    /// The one hole of a key that is nothing else.
    fn hole_of(key: &str) -> (&str, &str) {
        match pieces(key).unwrap().as_slice() {
            [Hole { expression, spec }] => (expression, spec),
            other => panic!("{key}: {other:?}"),
        }
    }

    #[test]
    fn text_and_holes_take_turns() {
        let expected = [
            Text("a:"),
            Hole { expression: "b", spec: "" },
            Text(":c:"),
            Hole { expression: "d.e", spec: "" },
        ];
        assert_eq!(pieces("a:{b}:c:{d.e}").unwrap(), expected);
        assert_eq!(pieces("plain ✓").unwrap(), [Text("plain ✓")]);
        assert_eq!(pieces("").unwrap(), []);
    }

    #[test]
    fn doubled_braces_are_text() {
        assert_eq!(pieces("{{a}}").unwrap(), [Text("{"), Text("a"), Text("}")]);
        assert_eq!(pieces("{{{a}}}").unwrap(), [Text("{"), Hole { expression: "a", spec: "" }, Text("}")]);
    }

    #[test]
    fn a_single_colon_begins_the_spec() {
        assert_eq!(hole_of("{id:04}"), ("id", ":04"));
        assert_eq!(hole_of("{name:?}"), ("name", ":?"));
        assert_eq!(hole_of("{ name : >8 }"), ("name", ": >8 "));
        assert_eq!(hole_of("{crate::SHOP}"), ("crate::SHOP", ""));
        assert_eq!(hole_of("{shop::id::<u8>():#x}"), ("shop::id::<u8>()", ":#x"));
        assert_eq!(hole_of("{:?}"), ("", ":?"));
        assert_eq!(hole_of("{}"), ("", ""));
    }

    #[test]
    fn an_expression_may_have_braces_colons_and_quotes_of_its_own() {
        for expression in [
            "Point { x: 1, y: id }.sum()",
            "match id { 0 => 'a', _ => 'b' }",
            "map[\"}:\"]",
            "name.trim_matches('}')",
            "name.trim_matches('\\'')",
            "name.trim_matches(\"\\\"}\")",
            "cut::<'static>(name, ':')",
            "[a, b][i]",
        ] {
            assert_eq!(hole_of(&format!("{{{expression}}}")), (expression, ""));
            assert_eq!(hole_of(&format!("{{{expression}:>4}}")), (expression, ":>4"));
        }
    }

    #[test]
    fn a_brace_without_its_partner_is_an_error_that_says_what_to_write() {
        for key in ["{", "a:{id", "{id:04", "{a(}", "{a)}", "{a[(])}", "{\"}", "{a{}"] {
            let problem = pieces(key).unwrap_err();
            assert!(problem.contains("has no closing brace; write `}` behind"), "{key}: {problem}");
        }
        for key in ["}", "a}", "{id}}", "}{"] {
            assert!(pieces(key).unwrap_err().starts_with("`}` closes nothing; write `}}`"), "{key}");
        }
    }
}
