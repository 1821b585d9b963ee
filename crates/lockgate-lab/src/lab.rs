//! The lab: every strategy of the field side by side, with the truth about each.
//!
//! ```text
//! report    what a run found: what tables, JSON and charts are made from
//! audit     says what went wrong, from what users were told and what the database holds
//! claim     what a strategy says of itself, and whether the rounds bear it out
//! ```

pub mod audit;
pub mod claim;
pub mod report;
