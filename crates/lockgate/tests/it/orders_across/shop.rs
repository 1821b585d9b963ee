//! A shop whose articles lie in several partitions, and how to see whether an order is whole.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lockgate::Gate;
use lockgate::config::Config;
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::stock::{OrderPlace, Shortage, Sku, Terms};
use lockgate::store::{Campaign, CampaignKind, HoldId, JournalChange, JournalEntry, JournalPosition, Store};
use lockgate::testing::breakable::BreakableStore;
use lockgate::testing::eventually_async;
use lockgate::testing::services::Cluster;

pub(super) const SOON: Duration = Duration::from_secs(20);

/// What everybody orders in the tests of faults: of each article, in the order of their names.
pub(super) const WANTED: [u64; 3] = [1, 2, 1];

/// One for all tests. The kernel ends it with them.
fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start().unwrap())
}

/// For how many more seconds a key is kept; `None` when there is no such key, or for ever.
pub(super) fn kept_for(key: &str) -> Option<u64> {
    let left = cluster().master_of(key).unwrap().command(&["TTL", key]).unwrap().as_int().unwrap();
    u64::try_from(left).ok()
}

/// Three articles in three partitions.
pub(super) struct Shop {
    pub(super) gate: Gate,
    pub(super) config: Config,
    pub(super) campaigns: [Campaign; 3],
}

impl Shop {
    /// Opens a shop whose orders may be doubted at once, if `order_deadline` is zero.
    pub(super) async fn open(namespace: &str, stock: u64, order_deadline: Duration) -> Self {
        let mut config = Config::default();
        (config.namespace, config.order_deadline) = (namespace.into(), order_deadline);
        config.redis.cluster_partitions = 8;
        let url = cluster().url();
        let gate = Gate::open_with(&url, &config).await.unwrap();
        let campaigns = in_three_partitions(gate.store().as_ref());
        let shop = Self { gate, config, campaigns };
        for sku in shop.skus(&shop.gate) {
            sku.open(&Terms::new(stock).unwrap()).await.unwrap();
        }
        shop
    }

    pub(super) fn skus(&self, gate: &Gate) -> [Sku; 3] {
        std::array::from_fn(|place| gate.sku(self.campaigns[place].name.as_str()).unwrap())
    }

    /// A process of its own, whose calls can be broken.
    pub(super) fn process(&self) -> (Gate, Arc<BreakableStore>) {
        let store = Arc::new(BreakableStore::new(Arc::clone(self.gate.store())));
        (Gate::on_with(Arc::clone(&store) as Arc<dyn Store>, &self.config), store)
    }

    /// Places an order for [`WANTED`].
    pub(super) async fn order(&self, gate: &Gate, id: &str) -> Result<OrderPlace, StoreError> {
        self.order_of(gate, id, id, WANTED).await
    }

    pub(super) async fn order_of(
        &self,
        gate: &Gate,
        id: &str,
        user: &str,
        wanted: [u64; 3],
    ) -> Result<OrderPlace, StoreError> {
        let mut order = gate.order(user).unwrap().named(id).unwrap();
        for (sku, quantity) in self.skus(gate).iter().zip(wanted).filter(|(_, quantity)| *quantity > 0) {
            order = order.item(sku, quantity);
        }
        order.place().await
    }

    async fn counted(&self, count: impl Fn(&lockgate::stock::CampaignStatus) -> u64) -> [u64; 3] {
        let mut counts = [0; 3];
        for (sku, number) in self.skus(&self.gate).iter().zip(&mut counts) {
            *number = count(&sku.status().await.unwrap().unwrap());
        }
        counts
    }

    pub(super) async fn granted(&self) -> [u64; 3] {
        self.counted(|status| status.granted).await
    }

    pub(super) async fn held(&self) -> [u64; 3] {
        self.counted(|status| status.held).await
    }

    /// Somebody else resolves the doubts until nothing is held any more.
    pub(super) async fn resolve(&self) {
        let resolved = async || {
            self.gate.resolve_orders().await.unwrap();
            self.held().await == [0; 3]
        };
        assert!(eventually_async(SOON, resolved).await, "held for ever: {:?}", self.held().await);
        assert_eq!(self.gate.resolve_orders().await.unwrap(), 0, "in doubt although nothing is held");
    }

    /// The numbers of an order, by its status as each of its articles tells it.
    pub(super) async fn numbers_of(&self, id: &str) -> Option<Vec<u64>> {
        let mut told = BTreeSet::new();
        for sku in self.skus(&self.gate) {
            let status = sku.order_status(id).await.unwrap();
            told.insert(status.map(|status| status.items.iter().map(|(_, seq)| *seq).collect::<Vec<_>>()));
        }
        assert_eq!(told.len(), 1, "{told:?}");
        told.pop_first().unwrap()
    }

    /// The journal of all partitions: every change of every article once, in its order.
    pub(super) async fn journal(&self) -> Vec<JournalEntry> {
        let (store, mut all) = (self.gate.store(), Vec::new());
        for partition in 0..store.partitions() {
            let mut after = JournalPosition::START;
            loop {
                let page = store.journal_read(partition, after, 1_000).await.unwrap();
                let Some(last) = page.last() else { break };
                after = last.position;
                all.extend(page);
            }
        }
        let mut revs: HashMap<Campaign, u64> = HashMap::new();
        for entry in &all {
            let rev = revs.entry(entry.campaign.clone()).or_default();
            assert_eq!(entry.rev, *rev + 1, "a gap or a repeat: {entry:?}");
            *rev = entry.last_rev();
        }
        all
    }

    /// What each user was granted of each article, by the journal; and that nothing is still put aside.
    pub(super) async fn granted_by_journal(&self) -> BTreeMap<String, [u64; 3]> {
        let mut held: HashMap<HoldId, u64> = HashMap::new();
        let mut granted: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        for entry in self.journal().await {
            let article = self.campaigns.iter().position(|sku| *sku == entry.campaign).unwrap();
            match entry.change {
                JournalChange::Held { id, quantity, .. } => {
                    assert_eq!(held.insert(id, quantity), None, "put aside twice");
                }
                JournalChange::Confirmed { id, user, quantity, .. } => {
                    assert_eq!(held.remove(&id), Some(quantity), "not put aside");
                    granted.entry(user.to_string()).or_default()[article] += quantity;
                }
                JournalChange::Cancelled { id, quantity, .. } => {
                    assert_eq!(held.remove(&id), Some(quantity), "not put aside");
                }
                JournalChange::Opened { .. } | JournalChange::Changed { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(held.is_empty(), "still put aside: {held:?}");
        granted
    }

    /// What an order came to that something happened to: entirely placed or entirely absent, whatever its process was told,
    /// and from now on always the same. `user` has ordered nothing else.
    pub(super) async fn is_all_or_nothing(&self, id: &str, told: &Result<OrderPlace, StoreError>) {
        let granted = self.granted_by_journal().await.get(id).copied();
        let numbers = self.numbers_of(id).await;
        match granted {
            Some(granted) => assert_eq!(granted, WANTED, "placed in part: {told:?}"),
            None => assert_eq!(numbers, None, "a status of nothing: {told:?}"),
        }
        match told {
            Ok(OrderPlace::Placed { seqs }) => assert_eq!(Some(seqs), numbers.as_ref()),
            Err(StoreError::Unavailable(_)) => assert_eq!(granted, None, "{told:?}"),
            Err(StoreError::UnknownOutcome(why)) if why.contains("is placed") => {
                assert_eq!(granted, Some(WANTED), "{told:?}");
            }
            Err(StoreError::UnknownOutcome(_)) => {}
            other => panic!("{other:?}"),
        }
        let again = self.order(&self.gate, id).await.unwrap();
        let seqs = match (numbers, again) {
            (Some(numbers), OrderPlace::AlreadyPlaced { seqs }) => {
                assert_eq!(seqs, numbers);
                seqs
            }
            (None, OrderPlace::Placed { seqs }) => seqs,
            other => panic!("{other:?} after {told:?}"),
        };
        let placed_once = OrderPlace::AlreadyPlaced { seqs };
        assert_eq!(self.order(&self.gate, id).await.unwrap(), placed_once);
        assert_eq!(self.order_of(&self.gate, id, "other", WANTED).await.unwrap(), OrderPlace::RequestReused);
        assert_eq!(self.granted_by_journal().await.get(id), Some(&WANTED), "{told:?}");
        assert_eq!(self.held().await, [0; 3]);
    }
}

/// Articles by their names, each in another partition.
fn in_three_partitions(store: &dyn Store) -> [Campaign; 3] {
    let sku = |number: u32| {
        Campaign::new(CampaignKind::Sku, Name::new("sku", format!("article {number} {{x}}")).unwrap())
    };
    let mut found: BTreeMap<u16, Campaign> = BTreeMap::new();
    for number in 10..99 {
        let sku = sku(number);
        found.entry(store.partition_of(sku.home())).or_insert(sku);
    }
    let mut found: Vec<_> = found.into_values().take(3).collect();
    // As orders sort them. Their partitions are in whatever order.
    found.sort();
    found.try_into().unwrap()
}

pub(super) fn short(item: usize, requested: u64, available: u64) -> Shortage {
    Shortage { item, requested, available }
}
