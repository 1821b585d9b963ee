//! What stands in the parentheses of `#[locked(...)]`.

use proc_macro2::TokenStream;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprLit, Ident, Lit, LitStr, Token};

use crate::duration::{self, DEFAULT_LEASE_MS, DEFAULT_WAIT_MS};
use crate::function::Arguments;
use crate::key::Key;
use crate::problems::Problems;

/// Every attribute, with an example of how it is written.
const KNOWN: [(&str, &str); 4] = [
    ("key", "key = \"coupon:{coupon_id}\""),
    ("wait", "wait = \"3s\""),
    ("lease", "lease = \"5s\""),
    ("gate", "gate = self.gate"),
];

/// All attributes, checked, with their defaults.
pub(crate) struct Attributes {
    /// One, or several that are taken together.
    pub(crate) keys: Vec<Key>,
    pub(crate) wait_ms: u64,
    pub(crate) lease_ms: u64,
    pub(crate) gate: Option<Expr>,
}

impl Attributes {
    /// Reads them for a function with these arguments. The error is every error that there is.
    pub(crate) fn read(attributes: TokenStream, arguments: &Arguments) -> syn::Result<Self> {
        let entries = Punctuated::<Entry, Token![,]>::parse_terminated.parse2(attributes)?;
        let mut problems = Problems::default();
        let (mut keys, mut wait_ms, mut lease_ms, mut gate) = (None, None, None, None);
        for (nth, entry) in entries.iter().enumerate() {
            if entries.iter().take(nth).any(|earlier| earlier.name == entry.name) {
                problems.add(entry.is_given_twice());
                continue;
            }
            match entry.name.to_string().as_str() {
                "key" => keys = problems.value_of(entry.keys(arguments)),
                "wait" => wait_ms = problems.value_of(entry.duration(duration::milliseconds)),
                "lease" => lease_ms = problems.value_of(entry.duration(duration::lease_milliseconds)),
                "gate" => gate = Some(entry.value.clone()),
                _ => problems.add(unknown(&entry.name)),
            }
        }
        // An unknown name may be a misspelled `key`.
        if entries.iter().all(|entry| entry.name != "key" && example_of(&entry.name).is_some()) {
            problems.add(arguments.without_key());
        }
        problems.into_result()?;
        let keys = keys.ok_or_else(|| arguments.without_key())?;
        let (wait_ms, lease_ms) = (wait_ms.unwrap_or(DEFAULT_WAIT_MS), lease_ms.unwrap_or(DEFAULT_LEASE_MS));
        Ok(Self { keys, wait_ms, lease_ms, gate })
    }
}

/// One `name = value`.
struct Entry {
    name: Ident,
    value: Expr,
}

impl Parse for Entry {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if !input.peek(Ident::peek_any) {
            return Err(has_no_name(input));
        }
        let name = input.call(Ident::parse_any)?;
        let equals: Option<Token![=]> = input.parse()?;
        if equals.is_none() || input.is_empty() || input.peek(Token![,]) {
            return Err(has_no_value(&name));
        }
        Ok(Self { name, value: input.parse()? })
    }
}

impl Entry {
    /// A string, or several in brackets.
    fn keys(&self, arguments: &Arguments) -> syn::Result<Vec<Key>> {
        let several = match without_group(&self.value) {
            Expr::Array(several) if several.elems.is_empty() => {
                let problem =
                    format!("there is no key; write a name, as in `{}`", arguments.example_of_a_key());
                return Err(Error::new_spanned(&self.value, problem));
            }
            Expr::Array(several) => several.elems.iter().collect(),
            one => vec![one],
        };
        let mut problems = Problems::default();
        let keys =
            several.into_iter().filter_map(|key| problems.value_of(read_key(key, arguments))).collect();
        problems.into_result()?;
        Ok(keys)
    }

    fn duration(&self, milliseconds: fn(&str) -> Result<u64, String>) -> syn::Result<u64> {
        match string_literal(&self.value) {
            Some(literal) => {
                milliseconds(&literal.value()).map_err(|problem| Error::new(literal.span(), problem))
            }
            None => Err(Error::new_spanned(
                &self.value,
                format!(
                    "`{name}` takes a duration in quotes; write a number and a unit, as in `{name} = \"3s\"`",
                    name = self.name
                ),
            )),
        }
    }

    fn is_given_twice(&self) -> Error {
        Error::new(self.name.span(), format!("`{}` is given twice; keep one of them", self.name))
    }
}

fn read_key(key: &Expr, arguments: &Arguments) -> syn::Result<Key> {
    match string_literal(key) {
        Some(literal) => Key::read(literal, arguments),
        None => Err(Error::new_spanned(
            key,
            format!("`key` takes a string literal; write `{}`", arguments.example_of_a_key()),
        )),
    }
}

fn string_literal(value: &Expr) -> Option<&LitStr> {
    match without_group(value) {
        Expr::Lit(ExprLit { lit: Lit::Str(literal), .. }) => Some(literal),
        _ => None,
    }
}

/// The expression itself, if it came through another macro.
fn without_group(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => without_group(&group.expr),
        value => value,
    }
}

fn example_of(name: &Ident) -> Option<&'static str> {
    KNOWN.iter().find(|(known, _)| name == known).map(|(_, example)| *example)
}

/// Somebody who writes a string alone means the key.
fn has_no_name(input: ParseStream<'_>) -> Error {
    let key = input.fork().parse::<LitStr>().map_or("coupon:{coupon_id}".to_owned(), |key| key.value());
    input.error(format!("a name is missing here; write `key = {key:?}`"))
}

fn has_no_value(name: &Ident) -> Error {
    match example_of(name) {
        Some(example) => Error::new(name.span(), format!("`{name}` needs a value; write `{example}`")),
        None => unknown(name),
    }
}

fn unknown(name: &Ident) -> Error {
    let known = KNOWN.map(|(known, _)| format!("`{known}`")).join(", ");
    Error::new(name.span(), format!("unknown attribute `{name}`; known are: {known}"))
}
