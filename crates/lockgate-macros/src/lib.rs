//! The home of `#[locked]`, the attribute that runs an async function under a lock.
//!
//! Empty for now: the attribute comes with the mutex that it takes, and a procedural-macro crate can export nothing
//! else. It is a crate of its own because the compiler wants it so.
