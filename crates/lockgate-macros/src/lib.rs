//! The attribute `#[locked]`: an async function that runs under a lock.
//!
//! Use it as `lockgate::locked`: what it writes calls `lockgate::locked::run`, and does nothing else.
//!
//! # The map
//!
//! | where | what |
//! | --- | --- |
//! | `function` | the function as it was written, and whether it can be locked |
//! | `attributes` | what stands in the parentheses |
//! | `key` | `"coupon:{coupon_id}"`, from the text to a `format!` |
//! | `duration` | `"3s"`, to milliseconds |
//! | `expand` | the function as it will be compiled |
//! | `problems` | several errors, reported together |

mod attributes;
mod duration;
mod expand;
mod function;
mod key;
mod problems;

use proc_macro::TokenStream;

/// Runs an async function under a lock.
///
/// The lock is taken before the body begins and given back when it ends, also by `return` or by `?`. A call that does
/// not get it within `wait` returns an error, and its body does not begin.
///
/// It goes on an `async fn`: a function or a method, generic or not. The function returns a `Result` whose error is
/// `From<LockError>`: that is how it says that the lock was not to be had.
///
/// | attribute | default | what |
/// | --- | --- | --- |
/// | `key = "coupon:{coupon_id}"` | none: it must be given | the lock's name; calls with the same key wait for each other |
/// | `key = ["account:{from}", "account:{to}"]` | | several locks, all or none: see `MultiLock` |
/// | `wait = "3s"` | `"5s"` | for how long to wait for the lock; with `"0s"` it is tried once |
/// | `lease = "5s"` | `"10s"` | for how long the lock is taken, `"1ms"` to `"24h"` |
/// | `gate = self.gate` | the program's gate | where the lock is: an expression for a `Gate` or a reference to one |
///
/// A duration is a whole number and a unit: `ms`, `s`, `m` or `h`.
///
/// # The key
///
/// It is written as for `format!`: `{{` and `}}` are braces, and `{id:04}` or `{name:?}` say how to print. Unlike
/// there, any expression may stand between the braces, such as `{self.shop}`, `{req.user.id}` or `{items.len()}`. It
/// starts from an argument, from `self`, from a path with `::` or from an `UPPER_CASE` constant; everything else is an
/// error, which names the arguments.
///
/// Several keys in brackets are taken together, in the order of the names that they come to, so that a transfer from 1 to 2
/// and one from 2 to 1 do not wait for each other for ever; the same name twice counts once. A call from inside that needs
/// some of the keys that its caller has, and others, takes the others: two functions that do so with each other's keys can
/// wait for each other until `wait` is over.
///
/// Key and gate are evaluated once, before the body gets the arguments.
///
/// # What it is replaced by
///
/// ```text
/// async fn issue(coupon_id: u64, state: &State) -> Result<Issue, MyError> {
///     let keys = [format!("coupon:{}", coupon_id)];
///     let gate = lockgate::locked::gate(&state.gate); // if one was named
///     lockgate::locked::run(Some(&gate), keys, wait, lease, async move { /* the body */ }).await
/// }
/// ```
///
/// Other attributes of the function stay. `#[locked]` stands above those that make something else of an `async fn`,
/// such as `#[tokio::main]`. Of two `#[locked]`, the lower one is taken first.
#[proc_macro_attribute]
pub fn locked(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand::locked(attributes.into(), &item.into()).into()
}
