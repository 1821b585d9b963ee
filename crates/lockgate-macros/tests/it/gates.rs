//! `gate`.

use std::sync::{Arc, LazyLock};

use lockgate_macros::locked;

use crate::Gate;
use crate::lock::LockError;
use crate::stand_in::finish;

static EVERYBODYS: LazyLock<Gate> = LazyLock::new(|| Gate("everybody's"));

struct Shop {
    gate: Gate,
    sold: u64,
}

struct State<T>(T);

impl Shop {
    fn gate(&self) -> &Gate {
        &self.gate
    }

    #[locked(key = "field", gate = self.gate)]
    async fn of_a_field(&self) -> Result<u64, LockError> {
        Ok(self.sold)
    }

    #[locked(key = "method", gate = self.gate())]
    async fn of_a_method(&mut self) -> Result<u64, LockError> {
        self.sold += 1;
        Ok(self.sold)
    }

    #[locked(key = "self", gate = self.gate)]
    async fn of_a_self_that_is_moved(self) -> Result<Self, LockError> {
        Ok(self)
    }
}

#[locked(key = "state", gate = state.gate)]
async fn of_a_state_that_is_moved(State(state): State<Arc<Shop>>) -> Result<Arc<Shop>, LockError> {
    Ok(state)
}

#[locked(key = "owned", gate = gate)]
async fn of_an_argument(gate: Gate) -> Result<Gate, LockError> {
    Ok(gate)
}

#[locked(key = "deep", gate = gate)]
async fn of_references(gate: &&&Arc<Gate>) -> Result<&'static str, LockError> {
    Ok(gate.0)
}

#[locked(key = "static", gate = EVERYBODYS)]
async fn of_a_static() -> Result<(), LockError> {
    Ok(())
}

#[locked(key = "made", gate = if north { Gate("north") } else { Gate("south") })]
async fn of_any_expression(north: bool) -> Result<bool, LockError> {
    Ok(north)
}

#[locked(key = "none")]
async fn none() -> Result<(), LockError> {
    Ok(())
}

fn gate_of<T>(future: impl Future<Output = Result<T, LockError>>) -> Option<&'static str> {
    let (result, calls) = finish(future);
    assert!(result.is_ok());
    calls[0].gate
}

fn shop() -> Shop {
    Shop { gate: Gate("shop's"), sold: 0 }
}

#[test]
fn without_one_it_is_the_programs() {
    assert_eq!(gate_of(none()), None);
}

#[test]
fn it_may_be_owned_borrowed_or_shared() {
    assert_eq!(gate_of(shop().of_a_field()), Some("shop's"));
    assert_eq!(gate_of(shop().of_a_method()), Some("shop's"));
    assert_eq!(gate_of(of_references(&&&Arc::new(Gate("deep")))), Some("deep"));
    assert_eq!(gate_of(of_a_static()), Some("everybody's"));
    assert_eq!(gate_of(of_any_expression(true)), Some("north"));
}

#[test]
fn what_it_was_found_in_may_move_into_the_body() {
    assert_eq!(gate_of(shop().of_a_self_that_is_moved()), Some("shop's"));
    assert_eq!(gate_of(of_a_state_that_is_moved(State(Arc::new(shop())))), Some("shop's"));
    assert_eq!(gate_of(of_an_argument(Gate("mine"))), Some("mine"));
}
