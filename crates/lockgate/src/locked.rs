//! What the attribute `#[locked]` calls. Meant for the code that it writes; everybody else has [`lock`](crate::lock).
//!
//! **Promise:** the body runs while the lock is held, and not a moment longer: when the lock is lost, for example because
//! the body takes longer than the lease, the body is dropped where it stands and the function returns
//! [`LockError::Lost`]. A function that is called from inside, under the same key, does not wait for its caller: it takes
//! part in the lock that is held. Two that are called beside each other (`join!`, [`spawn`](tokio::spawn)) do wait for each
//! other; only under the key of the function that calls both do they both take part in its lock, as parts of its body.

use std::future::Future;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use crate::Gate;
use crate::lock::{LockError, MultiGuard, Owner};

/// The program's gate: see [`Gate::make_default`].
static DEFAULT: RwLock<Option<Gate>> = RwLock::new(None);

tokio::task_local! {
    /// The locked functions in which this one is called, each an owner of its own.
    static CALLERS: Vec<Owner>;
}

pub(crate) fn make_default(gate: Gate) {
    *DEFAULT.write().unwrap_or_else(PoisonError::into_inner) = Some(gate);
}

fn default_gate() -> Result<Gate, LockError> {
    DEFAULT.read().unwrap_or_else(PoisonError::into_inner).clone().ok_or(LockError::NoGate)
}

/// The gate that `gate = …` names, to keep while the function runs. References to one are followed by themselves when
/// they are passed here.
#[must_use]
pub fn gate(given: &Gate) -> Gate {
    given.clone()
}

/// Runs `body` under the locks `keys` of `gate`, or of the program's gate when there is none.
///
/// # Errors
///
/// The body's own, or a [`LockError`]: when the locks were not to be had, and then the body did not begin; or when one was
/// lost, and then the body was dropped.
///
/// # Cancel safety
///
/// Dropping it drops the body, and gives the locks back.
pub async fn run<T, E, F, const KEYS: usize>(
    gate: Option<&Gate>,
    keys: [String; KEYS],
    wait: Duration,
    lease: Duration,
    body: F,
) -> Result<T, E>
where
    F: Future<Output = Result<T, E>>,
    E: From<LockError>,
{
    let mut owners = CALLERS.try_with(Vec::clone).unwrap_or_default();
    let gate = gate.cloned().map_or_else(default_gate, Ok)?;
    let owner = Owner::new();
    let guard = take(&gate, &keys, wait, lease, &owners, &owner).await?;
    owners.push(owner);
    let outcome = guard.run(CALLERS.scope(owners, body)).await;
    // Not when the future is dropped above: then the guard does it.
    let released = guard.release().await;
    if let Err(why) = released {
        tracing::warn!(%why, "the release got no answer; the lease ends the lock at the latest");
    }
    outcome.map_err(LockError::from)?
}

/// Takes part in what the callers hold already, and takes the rest together.
async fn take(
    gate: &Gate,
    keys: &[String],
    wait: Duration,
    lease: Duration,
    callers: &[Owner],
    owner: &Owner,
) -> Result<MultiGuard, LockError> {
    let (mut of_callers, mut rest) = (Vec::new(), Vec::new());
    for key in keys {
        let mutex = gate.mutex(key)?;
        match callers.iter().find_map(|caller| mutex.clone().owned_by(caller).enter_again()) {
            Some(guard) => of_callers.push(guard),
            None => rest.push(key),
        }
    }
    Ok(match &rest[..] {
        [] => gate.multi_guard(of_callers),
        [one] => {
            let guard = gate.mutex(one)?.wait(wait).lease(lease)?.owned_by(owner).lock().await?;
            of_callers.push(guard);
            gate.multi_guard(of_callers)
        }
        several => {
            let rest = gate.multi_lock(several)?.wait(wait).lease(lease)?.owned_by(owner).lock().await?;
            rest.joined_by(of_callers)
        }
    })
}
