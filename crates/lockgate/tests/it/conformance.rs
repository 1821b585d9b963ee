//! The conformance suite, on every home of the store contract.

mod memory {
    use lockgate::testing::conformance::Home;

    lockgate::conformance_suite!(async { Home::embedded() });
}
