//! Programs that compile without a warning, and programs that do not compile, each with what the compiler says then.
//!
//! Four of those are in the compiler's own words (`*_of_another_type`, `*_without_*`), which a newer compiler may change:
//! `TRYBUILD=overwrite cargo test --package lockgate-macros` takes them over, and the difference shows whether they still
//! point where they should.

#[test]
fn fixtures() {
    let fixtures = trybuild::TestCases::new();
    fixtures.pass("tests/pass/*.rs");
    fixtures.compile_fail("tests/fail/*.rs");
}
