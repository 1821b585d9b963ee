//! The function as it was written, and whether it can be locked.

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::token::Brace;
use syn::{Attribute, Error, FnArg, Ident, Pat, ReturnType, Signature, Token, Type, Visibility, braced};

use crate::problems::Problems;

/// Types that everybody knows, and that are no `Result`. A name that is not here may be an alias of one.
const NEVER_A_RESULT: &[&str] = &[
    "bool", "char", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "str", "u8", "u16", "u32",
    "u64", "u128", "usize", "Box", "Option", "String", "Vec",
];

/// A function, of whose body only the ends are known: what is in it is the compiler's business.
pub(crate) struct Function {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) signature: Signature,
    pub(crate) inner_attributes: Vec<Attribute>,
    pub(crate) body: Body,
}

/// The statements between a function's braces.
pub(crate) struct Body {
    braces: Brace,
    statements: TokenStream,
}

impl Body {
    /// The block with another statement before its own. It is the same block: braces within braces would be worth a
    /// warning.
    pub(crate) fn behind(&self, first: TokenStream) -> TokenStream {
        let mut block = TokenStream::new();
        self.braces.surround(&mut block, |inside| inside.extend([first, self.statements.clone()]));
        block
    }
}

impl Parse for Function {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        let signature = parse_signature(input)?;
        if input.peek(Token![;]) {
            return Err(Error::new_spanned(&signature.ident, has_no_body(&signature.ident)));
        }
        let inside;
        let braces = braced!(inside in input);
        let inner_attributes = inside.call(Attribute::parse_inner)?;
        let body = Body { braces, statements: inside.parse()? };
        Ok(Self { attributes, visibility, signature, inner_attributes, body })
    }
}

fn parse_signature(input: ParseStream<'_>) -> syn::Result<Signature> {
    let item = input.fork();
    input.parse().map_err(|problem| not_a_function(&item).unwrap_or(problem))
}

/// The error for an item that begins like no function does.
fn not_a_function(item: ParseStream<'_>) -> Option<Error> {
    if item.peek(Token![async]) || item.peek(Token![fn]) {
        return None;
    }
    let first: TokenTree = item.parse().ok()?;
    Some(Error::new(first.span(), format!("`#[locked]` goes on an `async fn`, not on `{first}`")))
}

fn has_no_body(name: &Ident) -> String {
    format!("`{name}` has no body to lock; put `#[locked]` on the `async fn` that implements it")
}

impl Function {
    /// Everything that keeps it from being locked.
    pub(crate) fn can_be_locked(&self) -> syn::Result<()> {
        let Signature { asyncness, fn_token, ident, output, .. } = &self.signature;
        let mut problems = Problems::default();
        if asyncness.is_none() {
            let problem = format!("`#[locked]` waits, so `{ident}` must be `async fn`");
            problems.add(Error::new_spanned(fn_token, problem));
        }
        let problem = format!(
            "`{ident}` must return a Result whose error is From<LockError>, to say so when it gets no lock"
        );
        match output {
            ReturnType::Default => problems.add(Error::new_spanned(ident, problem)),
            ReturnType::Type(_, output) if is_never_a_result(output) => {
                problems.add(Error::new_spanned(output, problem));
            }
            ReturnType::Type(..) => {}
        }
        problems.into_result()
    }

    pub(crate) fn arguments(&self) -> Arguments {
        let mut names = Vec::new();
        for argument in &self.signature.inputs {
            match argument {
                FnArg::Receiver(receiver) => names.push(Ident::new("self", receiver.self_token.span)),
                FnArg::Typed(argument) => names_bound_by(&argument.pat, &mut names),
            }
        }
        Arguments { function: self.signature.ident.clone(), names }
    }
}

fn is_never_a_result(output: &Type) -> bool {
    match output {
        Type::Group(group) => is_never_a_result(&group.elem),
        Type::Paren(parentheses) => is_never_a_result(&parentheses.elem),
        Type::Path(path) => {
            let name = path.path.segments.last().map(|last| last.ident.to_string());
            name.is_some_and(|name| NEVER_A_RESULT.contains(&name.as_str()))
        }
        Type::Infer(_) | Type::Macro(_) | Type::Verbatim(_) => false,
        _ => true,
    }
}

fn names_bound_by(pattern: &Pat, names: &mut Vec<Ident>) {
    match pattern {
        Pat::Ident(pattern) => {
            names.push(pattern.ident.clone());
            pattern.subpat.iter().for_each(|(_, inner)| names_bound_by(inner, names));
        }
        // Every case of an or-pattern binds the same names.
        Pat::Or(pattern) => pattern.cases.iter().take(1).for_each(|inner| names_bound_by(inner, names)),
        Pat::Paren(pattern) => names_bound_by(&pattern.pat, names),
        Pat::Reference(pattern) => names_bound_by(&pattern.pat, names),
        Pat::Slice(pattern) => pattern.elems.iter().for_each(|inner| names_bound_by(inner, names)),
        Pat::Struct(pattern) => pattern.fields.iter().for_each(|field| names_bound_by(&field.pat, names)),
        Pat::Tuple(pattern) => pattern.elems.iter().for_each(|inner| names_bound_by(inner, names)),
        Pat::TupleStruct(pattern) => pattern.elems.iter().for_each(|inner| names_bound_by(inner, names)),
        Pat::Type(pattern) => names_bound_by(&pattern.pat, names),
        _ => {}
    }
}

/// The names that a key may start from, and the function that they belong to.
pub(crate) struct Arguments {
    function: Ident,
    names: Vec<Ident>,
}

impl Arguments {
    pub(crate) fn has(&self, name: &Ident) -> bool {
        self.names.contains(name)
    }

    /// The error for a name that is none of them.
    pub(crate) fn lack(&self, name: &Ident) -> Error {
        let names: Vec<_> = self.names.iter().map(|name| format!("`{name}`")).collect();
        let instead = match names.as_slice() {
            [] => ", which has none; write a key without it".to_owned(),
            [only] => format!("; write {only}"),
            names => format!("; write one of: {}", names.join(", ")),
        };
        Error::new(name.span(), format!("`{name}` is not an argument of `{}`{instead}", self.function))
    }

    /// What a hole may look like in this function, to be shown in errors.
    pub(crate) fn example_of_a_hole(&self) -> String {
        match self.names.first() {
            Some(name) if name == "self" => "{self.id}".to_owned(),
            Some(name) => format!("{{{name}}}"),
            None => "{id}".to_owned(),
        }
    }

    /// What the key of this function may look like, to be shown in errors.
    pub(crate) fn example_of_a_key(&self) -> String {
        let function = self.function.unraw();
        let hole =
            if self.names.is_empty() { String::new() } else { format!(":{}", self.example_of_a_hole()) };
        format!("key = \"{function}{hole}\"")
    }

    /// The error for a function whose lock has no name.
    pub(crate) fn without_key(&self) -> Error {
        let example = self.example_of_a_key();
        Error::new(Span::call_site(), format!("`key` is missing; write `#[locked({example})]`"))
    }
}
