//! The ledger on bad days: writers that are killed, databases that go away. Each time, those who were told that they have a
//! coupon are exactly those whom the ledger names.
