//! One file per strategy; this is the table of all of them.

use super::strategy::Strategy;

mod atomic_check_then_act;
mod cas;
mod conditional_update;
mod lease_too_short;
mod lease_too_short_fenced;
mod lockgate_coupon;
mod mutex_around_tx;
mod mutex_inside_tx;
mod mutex_no_tx;
mod mutex_with_timeout;
mod none;
mod optimistic;
mod pessimistic;
mod pipeline;
mod queue_blocking;
mod queue_busy;
mod queue_stream;
mod redis_handoff;
mod redis_naive;
mod redis_notify;
mod redis_spin;
mod redlock;
mod script_set;
mod script_set_queue;
mod script_sorted_set;
mod spin_in_process;

pub(super) use self::redis_naive::take_and_never_release;

/// From nothing at all to the library, in the order in which people usually get there.
pub(super) const ALL: &[Strategy] = &[
    none::STRATEGY,
    mutex_inside_tx::STRATEGY,
    mutex_no_tx::STRATEGY,
    mutex_around_tx::STRATEGY,
    mutex_with_timeout::STRATEGY,
    spin_in_process::STRATEGY,
    atomic_check_then_act::STRATEGY,
    cas::STRATEGY,
    optimistic::STRATEGY,
    pessimistic::STRATEGY,
    conditional_update::STRATEGY,
    redis_naive::STRATEGY,
    redis_spin::STRATEGY,
    redis_notify::STRATEGY,
    redis_handoff::STRATEGY,
    redlock::STRATEGY,
    lease_too_short::STRATEGY,
    lease_too_short_fenced::STRATEGY,
    script_set::STRATEGY,
    script_set_queue::STRATEGY,
    script_sorted_set::STRATEGY,
    pipeline::STRATEGY,
    queue_busy::STRATEGY,
    queue_blocking::STRATEGY,
    queue_stream::STRATEGY,
    lockgate_coupon::STRATEGY,
];
