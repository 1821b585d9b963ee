//! The function as it will be compiled.
//!
//! **Promise:** nobody sees a difference, neither in the signature nor in warnings, except that the body runs under the
//! lock.

use proc_macro2::{Literal, Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ReturnType, Token, Type, TypeInfer, parse_quote};

use crate::attributes::Attributes;
use crate::function::Function;
use crate::key::Key;
use crate::problems;

/// What `#[locked(attributes)] item` is replaced by.
pub(crate) fn locked(attributes: TokenStream, item: &TokenStream) -> TokenStream {
    try_locked(attributes, item.clone()).unwrap_or_else(|problems| {
        let errors = problems.into_compile_error();
        // The item stays, so that those who use it get no errors too; nor is it their fault that the key is not there
        // to use its arguments.
        quote!(#errors #[allow(unused_variables)] #item)
    })
}

fn try_locked(attributes: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let function: Function = syn::parse2(item)?;
    let attributes = Attributes::read(attributes, &function.arguments());
    let ((), attributes) = problems::both(function.can_be_locked(), attributes)?;
    Ok(under_lock(&function, &attributes))
}

/// The names `keys` and `gate` are of the macro's own site: the body cannot see them. Both are done before the body gets
/// the arguments, and borrow nothing from them.
fn under_lock(function: &Function, attributes: &Attributes) -> TokenStream {
    let Function { attributes: outer, visibility, signature, inner_attributes, body } = function;
    let output = output(&signature.output);
    // When the compiler does not like the call, the return type is what is wrong.
    let at_output = Span::mixed_site().located_at(output.span());
    let keys = attributes.keys.iter().map(Key::computed);
    let (find_gate, gate) = gate(attributes.gate.as_ref());
    let (wait, lease) = (duration(attributes.wait_ms), duration(attributes.lease_ms));
    let body = body.behind(tell_type(output));
    // Bound to a name, the future ends before the gate in every edition.
    let run = quote_spanned! {at_output=>
        let result = ::lockgate::locked::run(#gate, keys, #wait, #lease, async move #body).await;
        result
    };
    quote_spanned! {Span::mixed_site()=>
        #(#outer)*
        #visibility #signature {
            #(#inner_attributes)*
            let keys = [#(#keys),*];
            #find_gate
            #run
        }
    }
}

fn output(output: &ReturnType) -> Type {
    match output {
        ReturnType::Default => parse_quote!(()),
        ReturnType::Type(_, output) => Type::clone(output),
    }
}

/// What finds the gate, and how to name it then. It is cloned, because `async move` may move what it was found in.
fn gate(gate: Option<&Expr>) -> (TokenStream, TokenStream) {
    let site = Span::mixed_site();
    match gate {
        None => (TokenStream::new(), quote_spanned!(site=> ::core::option::Option::None)),
        Some(gate) => {
            // A reference to it, of whatever depth, is followed to the gate when it is passed as an argument.
            let borrowed = quote_spanned!(site.located_at(gate.span())=> &(#gate));
            let find = quote_spanned!(site=> let gate = ::lockgate::locked::gate(#borrowed););
            (find, quote_spanned!(site=> ::core::option::Option::Some(&gate)))
        }
    }
}

fn duration(milliseconds: u64) -> TokenStream {
    let milliseconds = Literal::u64_unsuffixed(milliseconds);
    quote_spanned!(Span::mixed_site()=> ::core::time::Duration::from_millis(#milliseconds))
}

/// An async block cannot name its type. A `return` that never happens tells it to the compiler, which can then convert
/// errors and boxes in the body as it does in any function.
fn tell_type(output: Type) -> TokenStream {
    let output = without_impl_trait(output);
    quote_spanned! {Span::mixed_site().located_at(output.span())=>
        if let ::core::option::Option::Some(never) = ::core::option::Option::None::<#output> {
            return never;
        }
    }
}

/// `impl Trait` stands for a type that only the body knows, and cannot be named beside it.
fn without_impl_trait(mut output: Type) -> Type {
    struct ImplTraitBecomesInferred;
    impl VisitMut for ImplTraitBecomesInferred {
        fn visit_type_mut(&mut self, part: &mut Type) {
            match part {
                Type::ImplTrait(hidden) => {
                    *part = Type::Infer(TypeInfer { underscore_token: Token![_](hidden.span()) });
                }
                _ => visit_mut::visit_type_mut(self, part),
            }
        }
    }
    ImplTraitBecomesInferred.visit_type_mut(&mut output);
    output
}
