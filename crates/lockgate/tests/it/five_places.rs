//! One operation, five places, one name. This test reads the sources, so that the rule cannot rot.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockgate::Gate;
use lockgate::clock::Clock;
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::store::memory::MemoryStore;
use lockgate::store::{OrderDecision, Sending, Store, Token};

/// The methods of the contract that are not operations on data.
const NOT_OPERATIONS: &[&str] =
    &["about", "answers_at_once", "listen", "partition_of", "partitions", "replicated"];

/// The operations on orders over several partitions. The store in memory has one partition, so there is no such order: it
/// inherits from the contract that it refuses them.
const OF_PARTITIONS: &[&str] =
    &["order_decide", "order_doubts", "order_find", "order_reserve", "order_settle"];

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(path)
}

/// The text of all Rust files in a folder of `src`.
fn all_rust_in(folder: &str) -> String {
    let files = fs::read_dir(source(folder)).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|end| end == "rs"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect()
}

/// The names of the functions that begin with `opening` in a text.
fn functions(text: &str, opening: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix(opening))
        .filter_map(|rest| rest.split(['(', '<']).next())
        .map(str::to_owned)
        .collect()
}

fn operations() -> BTreeSet<String> {
    let contract = fs::read_to_string(source("store.rs")).unwrap();
    let methods = contract.split_once("pub trait Store").unwrap().1.split_once("\n}").unwrap().0.to_owned();
    functions(&methods, "fn ").into_iter().filter(|name| !NOT_OPERATIONS.contains(&name.as_str())).collect()
}

#[test]
fn the_contract_has_operations() {
    assert!(operations().contains("mutex_acquire"), "{:?}", operations());
}

#[test]
fn every_operation_has_exactly_one_script() {
    let scripts: BTreeSet<_> = fs::read_dir(source("store/redis/scripts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(scripts, operations());
}

#[test]
fn every_operation_has_a_function_that_calls_its_script() {
    let callers = functions(&all_rust_in("store/redis"), "pub(super) async fn ");
    assert!(operations().is_subset(&callers), "{callers:?}");
}

#[test]
fn every_operation_has_a_function_in_memory() {
    let in_memory = functions(&all_rust_in("store/memory"), "pub(super) fn ");
    let refused = OF_PARTITIONS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(in_memory, &operations() - &refused);
}

#[test]
fn every_operation_has_a_conformance_test_that_is_run() {
    let tests = functions(&all_rust_in("testing/conformance"), "pub async fn ");
    assert_eq!(tests, operations());
    let suite = fs::read_to_string(source("testing/conformance.rs")).unwrap();
    let lists: Vec<BTreeSet<_>> = suite
        .split("$crate::conformance_suite! { $home =>")
        .skip(1)
        .map(|list| list.split_once('}').unwrap().0.split_whitespace().map(str::to_owned).collect())
        .collect();
    let [everywhere, of_partitions] = &lists[..] else { panic!("{lists:?}") };
    assert_eq!(of_partitions.iter().map(String::as_str).collect::<Vec<_>>(), OF_PARTITIONS);
    assert_eq!(everywhere | of_partitions, operations());
}

#[tokio::test]
async fn a_store_with_one_partition_refuses_what_is_over_several() {
    let store = MemoryStore::new(Clock::fake());
    let id = Name::new("order", "o").unwrap();
    assert_eq!(store.partitions(), 1);
    assert!(matches!(store.order_find(&id).await, Err(StoreError::Refused(_))));
    assert!(matches!(store.order_doubts(0, 1).await, Err(StoreError::Refused(_))));
    let decided = store.order_decide(&Sending::once(), &id, Token::random(), &OrderDecision::Abort).await;
    assert!(matches!(decided, Err(StoreError::Refused(_))));
    assert_eq!(Gate::on(Arc::new(store)).resolve_orders().await.unwrap(), 0);
}
