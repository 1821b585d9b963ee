//! `"coupon:{coupon_id}"`, from the text to a `format!`.
//!
//! **Promise:** the key that is computed is the one that was written. A brace that may have been meant otherwise, and a
//! name that is not the function's own, are errors.

mod roots;
mod template;

use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::{Error, Expr, LitStr};

use self::template::{Piece, pieces};
use crate::function::Arguments;
use crate::problems::Problems;

/// A key, checked.
pub(crate) struct Key {
    /// The text as `format!` wants it, with a nameless hole for each expression.
    format: LitStr,
    /// The same text without holes: what the key is when there are none.
    text: LitStr,
    expressions: Vec<Expr>,
}

impl Key {
    /// Reads the key of a function with these arguments. The error is every error that there is.
    pub(crate) fn read(literal: &LitStr, arguments: &Arguments) -> syn::Result<Self> {
        let written = literal.value();
        if written.is_empty() {
            let problem = format!("the key is empty; write a name, as in `{}`", arguments.example_of_a_key());
            return Err(Error::new(literal.span(), problem));
        }
        let pieces = pieces(&written).map_err(|problem| Error::new(literal.span(), problem))?;
        let (mut format, mut text) = (String::new(), String::new());
        let mut expressions = Vec::new();
        let mut problems = Problems::default();
        for piece in pieces {
            match piece {
                Piece::Text(piece) => {
                    format.push_str(&piece.replace('{', "{{").replace('}', "}}"));
                    text.push_str(piece);
                }
                Piece::Hole { expression, spec } => {
                    format.push_str(&format!("{{{spec}}}"));
                    expressions.extend(problems.value_of(read_hole(expression, literal.span(), arguments)));
                }
            }
        }
        problems.into_result()?;
        let spelled = |value: &str| LitStr::new(value, literal.span());
        Ok(Self { format: spelled(&format), text: spelled(&text), expressions })
    }

    /// The Rust expression that computes it, a `String`.
    pub(crate) fn computed(&self) -> TokenStream {
        let Self { format, text, expressions } = self;
        if expressions.is_empty() {
            quote_spanned!(Span::mixed_site()=> ::std::string::String::from(#text))
        } else {
            quote_spanned!(Span::mixed_site()=> ::std::format!(#format, #(#expressions),*))
        }
    }
}

/// The expression in a hole. All its tokens point at the key, so that the compiler's own errors do.
fn read_hole(expression: &str, span: Span, arguments: &Arguments) -> syn::Result<Expr> {
    let example = arguments.example_of_a_hole();
    if expression.is_empty() {
        return Err(Error::new(span, format!("`{{}}` is empty; write an argument in it, as in `{example}`")));
    }
    let parsed: Expr = LitStr::new(expression, span).parse().map_err(|problem| {
        Error::new(
            span,
            format!("`{expression}` is not an expression ({problem}); write one, as in `{example}`"),
        )
    })?;
    if matches!(parsed, Expr::Lit(_)) {
        let problem =
            format!("`{expression}` is the same in every call; write an argument, as in `{example}`");
        return Err(Error::new(span, problem));
    }
    roots::are_known(&parsed, arguments)?;
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;
    use crate::function::Function;

    fn arguments() -> Arguments {
        let function: Function = parse_quote!(
            async fn order(&self, id: u64, Path((user, _)): Path<(User, u8)>, items: &[Item]) {}
        );
        function.arguments()
    }

    fn computed(key: &str) -> String {
        Key::read(&LitStr::new(key, Span::call_site()), &arguments()).unwrap().computed().to_string()
    }

    fn problems(key: &str) -> Vec<String> {
        let key = Key::read(&LitStr::new(key, Span::call_site()), &arguments());
        key.err().unwrap().into_iter().map(|problem| problem.to_string()).collect()
    }

    #[test]
    fn expressions_become_arguments_of_format() {
        assert_eq!(computed("order:{id}"), r#":: std :: format ! ("order:{}" , id)"#);
        assert_eq!(
            computed("{self.shop}:{user.id():04}:{items.len()}:{Self::NAME:?}"),
            r#":: std :: format ! ("{}:{:04}:{}:{:?}" , self . shop , user . id () , items . len () , Self :: NAME)"#
        );
    }

    #[test]
    fn braces_stay_braces() {
        assert_eq!(computed("{{{id}}}"), r#":: std :: format ! ("{{{}}}" , id)"#);
    }

    #[test]
    fn a_key_without_holes_needs_no_format() {
        assert_eq!(computed("the {{only}} one"), r#":: std :: string :: String :: from ("the {only} one")"#);
    }

    #[test]
    fn every_hole_is_checked_and_every_error_reported() {
        let problems = problems("{}:{ida}:{id id}:{0}:{:?}");
        assert_eq!(problems.len(), 5, "{problems:?}");
        assert_eq!(problems[0], "`{}` is empty; write an argument in it, as in `{self.id}`");
        assert_eq!(
            problems[1],
            "`ida` is not an argument of `order`; write one of: `self`, `id`, `user`, `items`"
        );
        assert!(problems[2].starts_with("`id id` is not an expression (unexpected token"), "{}", problems[2]);
        assert_eq!(problems[3], "`0` is the same in every call; write an argument, as in `{self.id}`");
        assert_eq!(problems[4], problems[0]);
    }

    #[test]
    fn an_empty_key_is_told_what_to_write() {
        assert_eq!(problems(""), ["the key is empty; write a name, as in `key = \"order:{self.id}\"`"]);
    }
}
