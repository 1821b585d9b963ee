//! The front door: opens a store and hands out the gates.

use std::sync::Arc;

use crate::config::Config;
use crate::error::{InvalidInput, OpenError};
use crate::key::Name;
use crate::stock::Coupon;
use crate::store::Store;
use crate::store::memory::MemoryStore;

/// A store, opened. Cheap to clone; all clones share its connections.
///
/// ```
/// use lockgate::{Gate, stock::{CouponTerms, Issue}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gate = Gate::open("memory").await?;
/// let coupon = gate.coupon("welcome")?;
/// coupon.open(&CouponTerms::new(100)?).await?;
/// assert_eq!(coupon.issue("alice").await?, Issue::Issued { seq: 1, remaining: 99 });
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    store: Arc<dyn Store>,
}

impl Gate {
    /// Opens the store at `url` with the default configuration.
    ///
    /// `memory` is the embedded store; `redis://`, `rediss://`, `redis+sentinel://` and `redis+cluster://` need the
    /// feature `redis`.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        Self::open_with(url, &Config::default()).await
    }

    /// Opens the store at `url`.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub async fn open_with(url: &str, config: &Config) -> Result<Self, OpenError> {
        if url == "memory" {
            return Ok(Self::on(Arc::new(MemoryStore::with_claim(config.clock.clone(), config.claim))));
        }
        #[cfg(feature = "redis")]
        {
            Ok(Self::on(Arc::new(crate::store::redis::RedisStore::connect(url, config).await?)))
        }
        #[cfg(not(feature = "redis"))]
        {
            Err(OpenError::Config(format!(
                "the store URL {:?} needs the feature `redis`, which this program was built without; use `memory`",
                crate::error::without_secrets(url)
            )))
        }
    }

    /// A gate on a store that is open already.
    #[must_use]
    pub fn on(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The store behind the gates.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The coupon called `name`. It need not exist yet.
    ///
    /// # Errors
    ///
    /// When the name is empty or longer than 16 KiB.
    pub fn coupon(&self, name: impl AsRef<str>) -> Result<Coupon, InvalidInput> {
        Ok(Coupon::new(Arc::clone(&self.store), Name::new("coupon", name)?))
    }
}
