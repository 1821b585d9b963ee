//! `key`.

use std::fmt::Display;

use lockgate_macros::locked;

use crate::lock::LockError;
use crate::stand_in::{finish, finish_with_key};

const SHOP: &str = "north";

struct User {
    id: u64,
}

struct Request {
    user: User,
    items: Vec<u8>,
}

struct Path<T>(T);

struct Shop {
    name: String,
}

fn doubled(id: u64) -> u64 {
    id * 2
}

impl Shop {
    const KIND: &'static str = "shop";

    #[locked(key = "{Self::KIND}:{self.name}:{req.user.id}")]
    async fn order(&self, req: &Request) -> Result<u64, LockError> {
        Ok(req.user.id)
    }

    #[locked(key = "{self.name}")]
    async fn rename(&mut self, name: String) -> Result<(), LockError> {
        self.name = name;
        Ok(())
    }

    #[locked(key = "{self.name}")]
    async fn close(self) -> Result<String, LockError> {
        Ok(self.name)
    }
}

#[locked(key = "{SHOP}:{{{id:04}}}:{name:?}:{doubled(id)}:{req.items.len()}:{crate::keys::SHOP:>6}")]
async fn every_kind(id: u64, name: &str, req: &Request) -> Result<(), LockError> {
    let _ = (id, name, req);
    Ok(())
}

#[locked(
    key = r#"{if id > 0 { "some" } else { "none" }}:{req.items.iter().map(|item| item.min(&id)).sum::<u8>()}"#
)]
async fn computed(id: u8, req: &Request) -> Result<(), LockError> {
    let _ = (id, req);
    Ok(())
}

#[locked(key = "{{all}}")]
async fn fixed() -> Result<(), LockError> {
    Ok(())
}

#[locked(key = "{id}:{user}:{first}")]
async fn patterns(
    Path(id): Path<u64>,
    User { id: user }: User,
    [first, ..]: [u8; 2],
    (_, mut more): (u8, Vec<u8>),
) -> Result<Vec<u8>, LockError> {
    more.push(first);
    Ok(more)
}

#[locked(key = "{id}:{N}")]
async fn generic<'a, T, const N: usize>(id: &'a T, others: [&'a T; N]) -> Result<&'a T, LockError>
where
    T: Display + Sync,
{
    Ok(others.first().copied().unwrap_or(id))
}

#[locked(key = "user:{name}")]
async fn moved(name: String) -> Result<String, LockError> {
    let moved = name;
    Ok(moved)
}

#[test]
fn methods_reach_self_however_they_take_it() {
    let mut shop = Shop { name: "north".into() };
    let request = Request { user: User { id: 7 }, items: vec![] };
    assert_eq!(finish_with_key(shop.order(&request)), (Ok(7), "shop:north:7".into()));
    assert_eq!(finish_with_key(shop.rename("south".into())), (Ok(()), "north".into()));
    assert_eq!(finish_with_key(shop.close()), (Ok("south".into()), "south".into()));
}

#[test]
fn any_expression_is_printed_as_format_would() {
    let request = Request { user: User { id: 7 }, items: vec![1, 9] };
    let (_, key) = finish_with_key(every_kind(12, "a\"b", &request));
    assert_eq!(key, r#"north:{0012}:"a\"b":24:2: north"#);
    assert_eq!(finish_with_key(computed(3, &request)).1, "some:4");
    assert_eq!(finish_with_key(fixed()).1, "{all}");
}

#[test]
fn names_in_patterns_are_arguments() {
    let (result, key) = finish_with_key(patterns(Path(1), User { id: 2 }, [3, 4], (5, vec![6])));
    assert_eq!((result, key.as_str()), (Ok(vec![6, 3]), "1:2:3"));
}

#[test]
fn generics_and_lifetimes_stay() {
    assert_eq!(finish_with_key(generic(&1, [&2, &3])), (Ok(&2), "1:2".into()));
}

#[test]
fn the_key_is_done_before_the_body_gets_the_arguments() {
    assert_eq!(finish_with_key(moved("alice".into())), (Ok("alice".into()), "user:alice".into()));
}

#[locked(key = ["account:{from}", "account:{to}", "transfers"])]
async fn transfer(from: u64, to: u64) -> Result<u64, LockError> {
    Ok(from + to)
}

#[test]
fn several_keys_are_asked_for_together() {
    let (sum, calls) = finish(transfer(7, 3));
    assert_eq!(sum, Ok(10));
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].keys, ["account:7", "account:3", "transfers"]);
}
