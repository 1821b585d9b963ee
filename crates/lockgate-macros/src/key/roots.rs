//! What an expression starts from: `req` in `req.user.id`.
//!
//! Only what a key is usually made of is looked at. Whatever else an expression may hold (arguments of calls, blocks,
//! closures, macros) may name functions, types and variables of its own. Only the compiler can follow those; it reports
//! the ones that do not exist.

use syn::{Expr, Ident};

use crate::function::Arguments;
use crate::problems::Problems;

/// Whether everything that the expression starts from is an argument, a path or a constant.
pub(super) fn are_known(expression: &Expr, arguments: &Arguments) -> syn::Result<()> {
    let mut problems = Problems::default();
    for root in roots(expression) {
        if !arguments.has(root) && !is_constant(root) {
            problems.add(arguments.lack(root));
        }
    }
    problems.into_result()
}

fn roots(expression: &Expr) -> Vec<&Ident> {
    if let Expr::Path(path) = expression {
        // A path with `::` is no `Ident`: it says where it starts.
        return path.path.get_ident().into_iter().collect();
    }
    operands(expression).into_iter().flat_map(roots).collect()
}

/// The expressions that this one starts from.
fn operands(expression: &Expr) -> Vec<&Expr> {
    match expression {
        Expr::Await(future) => vec![&future.base],
        Expr::Binary(both) => vec![&both.left, &both.right],
        Expr::Cast(cast) => vec![&cast.expr],
        Expr::Field(field) => vec![&field.base],
        Expr::Group(group) => vec![&group.expr],
        Expr::Index(index) => vec![&index.expr, &index.index],
        Expr::MethodCall(call) => vec![&call.receiver],
        Expr::Paren(parentheses) => vec![&parentheses.expr],
        Expr::Reference(reference) => vec![&reference.expr],
        Expr::Try(fallible) => vec![&fallible.expr],
        Expr::Unary(unary) => vec![&unary.expr],
        _ => vec![],
    }
}

/// `UPPER_CASE`, as constants, statics and const parameters are spelled.
fn is_constant(name: &Ident) -> bool {
    let name = name.to_string();
    name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn roots_of(expression: &str) -> Vec<String> {
        let expression: Expr = syn::parse_str(expression).unwrap();
        roots(&expression).into_iter().map(Ident::to_string).collect()
    }

    #[test]
    fn a_value_starts_where_it_was_taken_from() {
        assert_eq!(roots_of("id"), ["id"]);
        assert_eq!(roots_of("req.user.id"), ["req"]);
        assert_eq!(roots_of("self.shop().name"), ["self"]);
        assert_eq!(roots_of("(&*items)[first].id()?"), ["items", "first"]);
        assert_eq!(roots_of("-a as u64 + b.await"), ["a", "b"]);
    }

    #[test]
    fn what_has_names_of_its_own_is_left_to_the_compiler() {
        assert_eq!(roots_of("Self::NAME"), [""; 0]);
        assert_eq!(roots_of("shop::current().id"), [""; 0]);
        assert_eq!(roots_of("hash(user)"), [""; 0]);
        assert_eq!(roots_of("user.ok_or(Nobody)?.map(trimmed)"), ["user"]);
        assert_eq!(roots_of("items.iter().map(|item| item.id).sum::<u64>()"), ["items"]);
        assert_eq!(roots_of("{ let x = 1; x }"), [""; 0]);
    }

    #[test]
    fn constants_are_upper_case() {
        for name in ["SHOP", "N", "SHOP_2", "_SHOP"] {
            assert!(is_constant(&Ident::new(name, proc_macro2::Span::call_site())), "{name}");
        }
        for name in ["shop", "Shop", "sHOP", "_", "_2"] {
            let name: Option<Ident> = syn::parse_str(name).ok();
            assert!(!name.is_some_and(|name| is_constant(&name)));
        }
    }

    #[test]
    fn a_function_without_arguments_is_told_so() {
        let function: crate::function::Function = parse_quote!(
            async fn sweep() {}
        );
        let problem = are_known(&parse_quote!(id), &function.arguments()).unwrap_err().to_string();
        assert_eq!(problem, "`id` is not an argument of `sweep`, which has none; write a key without it");
    }
}
