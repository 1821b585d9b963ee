//! Names become keys here, and nowhere else.
//!
//! **Promise:** whatever a name contains (braces, colons, control characters, NUL, emoji, kilobytes of anything),
//! it touches exactly the keys that belong to it: different names never share a key, and every key of a name
//! hashes to the slot of the name's partition.
//!
//! ```text
//! lg : {7} : coupon : summer%20sale
//! │    │     │        └ the name, last, percent-encoded: no brace and no control character survives
//! │    │     └ what it is, from a fixed list
//! │    └ the partition, as Redis Cluster's hash tag: the first braces of the key decide its slot
//! └ the namespace
//! ```
//!
//! There is one partition on a standalone server and 64 on a cluster. A name belongs to the partition of its hash,
//! so that everything that one script has to touch at once lives in one slot.

use std::cmp::Ordering;
use std::collections::hash_map::RandomState;
use std::fmt::{self, Write as _};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use crate::error::InvalidInput;

/// The version of the key format, written into the store at first use and compared at every connect.
pub const LAYOUT_VERSION: u32 = 3;

/// The longest name or id, in bytes. Long enough for any honest name, short enough that no key hurts.
pub const MAX_NAME_BYTES: usize = 16 * 1024;

const MAX_NAMESPACE_BYTES: usize = 32;

/// What a user calls a lock, a coupon or a person: 1 byte to 16 KiB of any text. Cheap to clone.
///
/// ```
/// use lockgate::key::Name;
///
/// let name = Name::new("coupon", "summer {sale} 🎟")?;
/// assert_eq!(name.as_str(), "summer {sale} 🎟");
/// assert!(Name::new("coupon", "").is_err());
/// # Ok::<(), lockgate::error::InvalidInput>(())
/// ```
#[derive(Clone)]
pub struct Name {
    text: Arc<str>,
    /// Of the text, under a key of this process: computed once, because a name is looked up several times, and some of them
    /// while everybody else waits.
    hash: u64,
}

impl Name {
    /// Takes `text` as a name; `field` is what an error calls it.
    ///
    /// # Errors
    ///
    /// When the text is empty or longer than [`MAX_NAME_BYTES`].
    pub fn new(field: &'static str, text: impl AsRef<str>) -> Result<Self, InvalidInput> {
        match text.as_ref() {
            "" => Err(InvalidInput::new(field, "must not be empty")),
            text if text.len() > MAX_NAME_BYTES => Err(InvalidInput::new(
                field,
                format!("is {} bytes long; at most {MAX_NAME_BYTES} are allowed", text.len()),
            )),
            text => Ok(Self { text: text.into(), hash: keyed_hash(text) }),
        }
    }

    /// The name as the user wrote it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A hash that nobody outside of this process can predict.
fn keyed_hash(text: &str) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    KEY.get_or_init(RandomState::new).hash_one(text)
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.text == other.text
    }
}

impl Eq for Name {}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

#[cfg(feature = "durable")]
impl serde::Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(feature = "durable")]
impl<'de> serde::Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::new("name", text).map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(f)
    }
}

/// What a key holds. The list is fixed, and no entry is the beginning of another one plus `:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A mutex: who holds it, with which fence, until when.
    Mutex,
    /// Who waits for a mutex, in which order.
    MutexQueue,
    /// A read-write lock: who holds it or waits for it, with which fences.
    RwLock,
    /// Who holds a read-write lock, by the end of their leases.
    RwLockHolders,
    /// Who waits for a read-write lock, in which order.
    RwLockQueue,
    /// How many permits a read-write lock has: never set, because they are always all there are.
    RwLockSize,
    /// A semaphore: who holds permits or waits for them, with which fences.
    Semaphore,
    /// Who holds a semaphore's permits, by the end of their leases.
    SemaphoreHolders,
    /// Who waits for a semaphore's permits, in which order.
    SemaphoreQueue,
    /// How many permits a semaphore has, if that was set.
    SemaphoreSize,
    /// A latch: from which number it counts down, and who was counted.
    Latch,
    /// A coupon's terms and counters.
    Coupon,
    /// Who has what of a coupon.
    CouponMembers,
    /// What is to be done about a coupon, and when.
    CouponDue,
    /// A deal's terms and counters.
    Deal,
    /// Who has what of a deal.
    DealMembers,
    /// What is to be done about a deal, and when.
    DealDue,
    /// An article's stock and counters.
    Sku,
    /// Who has what of an article.
    SkuMembers,
    /// What is to be done about an article, and when.
    SkuDue,
    /// An order that was placed.
    Order,
    /// An order over several partitions that was committed: which attempt, and what it took where.
    OrderRecord,
    /// An attempt to place an order that will never be committed.
    OrderAborted,
    /// A line's terms, counters and secrets.
    Line,
    /// The last number of everybody who has entered a line.
    LineUsers,
    /// Who has entered a line, in order.
    LinePeople,
    /// When the places of a line were entered and seen, and what became of them.
    LineMarks,
    /// Which places of a line were left.
    LineGone,
    /// How many places of a line were left or are admitted, in each block of them.
    LineGaps,
    /// Who is admitted from a line, by the end of their time.
    LineActive,
    /// How long those waited who were admitted lately.
    LineWaits,
    /// Who asked to admit people.
    LineRequests,
}

impl Kind {
    /// All kinds there are.
    pub const ALL: [Kind; 32] = [
        Kind::Mutex,
        Kind::MutexQueue,
        Kind::RwLock,
        Kind::RwLockHolders,
        Kind::RwLockQueue,
        Kind::RwLockSize,
        Kind::Semaphore,
        Kind::SemaphoreHolders,
        Kind::SemaphoreQueue,
        Kind::SemaphoreSize,
        Kind::Latch,
        Kind::Coupon,
        Kind::CouponMembers,
        Kind::CouponDue,
        Kind::Deal,
        Kind::DealMembers,
        Kind::DealDue,
        Kind::Sku,
        Kind::SkuMembers,
        Kind::SkuDue,
        Kind::Order,
        Kind::OrderRecord,
        Kind::OrderAborted,
        Kind::Line,
        Kind::LineUsers,
        Kind::LinePeople,
        Kind::LineMarks,
        Kind::LineGone,
        Kind::LineGaps,
        Kind::LineActive,
        Kind::LineWaits,
        Kind::LineRequests,
    ];

    const fn segment(self) -> &'static str {
        match self {
            Kind::Mutex => "mutex",
            Kind::MutexQueue => "mutex-queue",
            Kind::RwLock => "rw-lock",
            Kind::RwLockHolders => "rw-lock-holders",
            Kind::RwLockQueue => "rw-lock-queue",
            Kind::RwLockSize => "rw-lock-size",
            Kind::Semaphore => "semaphore",
            Kind::SemaphoreHolders => "semaphore-holders",
            Kind::SemaphoreQueue => "semaphore-queue",
            Kind::SemaphoreSize => "semaphore-size",
            Kind::Latch => "latch",
            Kind::Coupon => "coupon",
            Kind::CouponMembers => "coupon-members",
            Kind::CouponDue => "coupon-due",
            Kind::Deal => "deal",
            Kind::DealMembers => "deal-members",
            Kind::DealDue => "deal-due",
            Kind::Sku => "sku",
            Kind::SkuMembers => "sku-members",
            Kind::SkuDue => "sku-due",
            Kind::Order => "order",
            Kind::OrderRecord => "order-record",
            Kind::OrderAborted => "order-aborted",
            Kind::Line => "line",
            Kind::LineUsers => "line-users",
            Kind::LinePeople => "line-people",
            Kind::LineMarks => "line-marks",
            Kind::LineGone => "line-gone",
            Kind::LineGaps => "line-gaps",
            Kind::LineActive => "line-active",
            Kind::LineWaits => "line-waits",
            Kind::LineRequests => "line-requests",
        }
    }
}

/// All keys of one namespace.
#[derive(Clone, Debug)]
pub struct Keyspace {
    namespace: String,
    partitions: u16,
}

impl Keyspace {
    /// The keys under `namespace`, spread over `partitions` (at least one).
    ///
    /// # Errors
    ///
    /// When the namespace is not 1 to 32 letters, digits, `_` or `-`: it stands in front of the hash tag, so a brace
    /// in it would move every key to another slot.
    pub fn new(namespace: &str, partitions: u16) -> Result<Self, InvalidInput> {
        let fits = (1..=MAX_NAMESPACE_BYTES).contains(&namespace.len());
        if !fits || !namespace.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Err(InvalidInput::new(
                "namespace",
                format!("{namespace:?} must be 1 to {MAX_NAMESPACE_BYTES} of A-Z a-z 0-9 _ -"),
            ));
        }
        Ok(Self { namespace: namespace.to_owned(), partitions: partitions.max(1) })
    }

    /// How many partitions there are.
    #[must_use]
    pub fn partitions(&self) -> u16 {
        self.partitions
    }

    /// The partition that `name` belongs to.
    #[must_use]
    pub fn partition_of(&self, name: &Name) -> u16 {
        // Everybody asks, and on a single server the answer needs no look at the name.
        if self.partitions == 1 { 0 } else { crc16(name.as_str().as_bytes()) % self.partitions }
    }

    /// The key under which `name`'s `kind` is kept.
    #[must_use]
    pub fn key(&self, kind: Kind, name: &Name) -> String {
        self.key_beside(kind, name, name)
    }

    /// The key under which `name`'s `kind` is kept in the partition of the name `home`.
    #[must_use]
    pub fn key_beside(&self, kind: Kind, home: &Name, name: &Name) -> String {
        let mut key = String::with_capacity(self.namespace.len() + name.as_str().len() + 24);
        // Writing into a String cannot fail.
        let _ = write!(key, "{}:{{{}}}:{}:", self.namespace, self.partition_of(home), kind.segment());
        encode_into(&mut key, name.as_str());
        key
    }

    /// The key under which the `kind` of a `name` that belongs to a group is kept: in the group's partition, after the
    /// group's name and a slash, which no encoded name contains.
    #[must_use]
    pub fn key_in_group(&self, kind: Kind, group: &Name, name: &Name) -> String {
        let mut key = self.key_beside(kind, group, group);
        key.push('/');
        encode_into(&mut key, name.as_str());
        key
    }

    /// The key of a partition's journal.
    #[must_use]
    pub fn journal(&self, partition: u16) -> String {
        format!("{}:{{{partition}}}:journal", self.namespace)
    }

    /// The key of what says whether a partition's campaigns can be trusted.
    #[must_use]
    pub fn epoch(&self, partition: u16) -> String {
        format!("{}:{{{partition}}}:epoch", self.namespace)
    }

    /// The key of a partition's campaigns that miss something, or may.
    #[must_use]
    pub fn marks(&self, partition: u16) -> String {
        format!("{}:{{{partition}}}:marks", self.namespace)
    }

    /// The key that says since which run of the server a partition's locks may be given away, and from when on.
    #[must_use]
    pub fn quarantine(&self, partition: u16) -> String {
        format!("{}:{{{partition}}}:quarantine", self.namespace)
    }

    /// The key that is written in order to see that replicas have everything that was written before.
    #[must_use]
    pub fn replicated(&self, partition: u16) -> String {
        format!("{}:{{{partition}}}:replicated", self.namespace)
    }

    /// The key of the list of a partition's campaigns.
    #[must_use]
    pub fn campaigns(&self, partition: u16) -> String {
        format!("{}:{{{partition}}}:campaigns", self.namespace)
    }

    /// The key of the list of a partition's lines.
    #[must_use]
    pub fn lines(&self, partition: u16) -> String {
        format!("{}:{{{partition}}}:lines", self.namespace)
    }

    /// The key of the parts of orders that are under way in a partition.
    #[must_use]
    pub fn doubts(&self, partition: u16) -> String {
        format!("{}:{{{partition}}}:doubts", self.namespace)
    }

    /// The key of what a sender's slot was answered last. The slot is made by us: letters, digits and a dot.
    #[must_use]
    pub fn sending(&self, partition: u16, slot: &str) -> String {
        format!("{}:{{{partition}}}:sending:{slot}", self.namespace)
    }

    /// With what every channel begins.
    #[must_use]
    pub fn channels(&self) -> String {
        format!("{}:", self.namespace)
    }

    /// The channel on which one process hears, without the process.
    #[must_use]
    pub fn ears(&self) -> String {
        format!("{}:ear:", self.namespace)
    }

    /// The channel on which all processes hear which mutexes are free and which latches open; a message is the key.
    #[must_use]
    pub fn freed(&self) -> String {
        format!("{}:freed", self.namespace)
    }

    /// The name in a key that [`Keyspace::key`] made of `kind`.
    #[must_use]
    pub fn name_in(&self, kind: Kind, key: &str) -> Option<Name> {
        let rest = key.strip_prefix(&self.namespace)?.strip_prefix(":{")?.split_once("}:")?.1;
        let encoded = rest.strip_prefix(kind.segment())?.strip_prefix(':')?;
        Name::new("name", decode(encoded)?).ok()
    }

    /// The key that holds the layout (format version and partition count) that all processes must share.
    #[must_use]
    pub fn layout(&self) -> String {
        format!("{}:layout", self.namespace)
    }
}

/// Percent-encodes everything but letters, digits and `. _ : @ -`. Injective, because `%` itself is encoded.
fn encode_into(key: &mut String, name: &str) {
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"._:@-".contains(&byte) {
            key.push(char::from(byte));
        } else {
            let _ = write!(key, "%{byte:02X}");
        }
    }
}

/// Undoes [`encode_into`].
fn decode(encoded: &str) -> Option<String> {
    let mut parts = encoded.split('%');
    let mut bytes: Vec<u8> = parts.next()?.into();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// CRC16 (XMODEM), the hash that Redis Cluster itself uses: fixed for ever, and known to every Redis tool.
#[must_use]
pub fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The slot of a key after Redis Cluster's specification, written without a look at `Keyspace`.
    fn cluster_slot(key: &str) -> u16 {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
        crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key).as_bytes()) % 16_384
    }

    /// Names made of the pieces that have broken key formats before, and of anything at all.
    fn nasty_name() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "{",
            "}",
            "{}",
            "{0}",
            "{1}:",
            ":",
            "::",
            "%",
            "%7B",
            "%7b",
            "%25",
            "\0",
            "\n",
            "\r\n",
            "\u{7f}",
            "🎟",
            "é",
            " ",
            "*",
            "?",
            "[",
            "\\",
            "\"",
            "lg",
            "coupon",
            "coupon-members",
            "/",
            "mutex",
            "mutex-queue",
            "rw-lock",
            "-queue",
            "semaphore",
            "-size",
            "line",
            "-users",
            "a",
            "-members",
        ]);
        prop_oneof![
            prop::collection::vec(pieces, 1..8).prop_map(|parts| parts.concat()),
            any::<String>().prop_filter("names are not empty", |text| !text.is_empty()),
        ]
    }

    fn name(text: &str) -> Name {
        Name::new("name", text).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

        #[test]
        fn different_names_or_kinds_never_share_a_key(
            one in nasty_name(), two in nasty_name(),
            kind_one in prop::sample::select(&Kind::ALL[..]), kind_two in prop::sample::select(&Kind::ALL[..]),
        ) {
            let keys = Keyspace::new("lg", 64).unwrap();
            let same_key = keys.key(kind_one, &name(&one)) == keys.key(kind_two, &name(&two));
            prop_assert_eq!(same_key, one == two && kind_one == kind_two);
        }

        /// What can be read back cannot have become the same as something else.
        #[test]
        fn the_name_can_be_read_back_from_a_key_of_its_kind(
            text in nasty_name(), kind in prop::sample::select(&Kind::ALL[..]),
        ) {
            let keys = Keyspace::new("lg", 64).unwrap();
            let key = keys.key(kind, &name(&text));
            for other in Kind::ALL {
                let read = keys.name_in(other, &key).map(|name| name.as_str().to_owned());
                prop_assert_eq!(read, (other == kind).then(|| text.clone()));
            }
        }

        #[test]
        fn the_slot_of_a_key_is_always_that_of_its_partition(text in nasty_name(), partitions in 1_u16..200) {
            let keys = Keyspace::new("lg", partitions).unwrap();
            let name = name(&text);
            let slot_of_partition = crc16(keys.partition_of(&name).to_string().as_bytes()) % 16_384;
            for kind in Kind::ALL {
                prop_assert_eq!(cluster_slot(&keys.key(kind, &name)), slot_of_partition);
            }
        }

        #[test]
        fn a_key_is_plain_text_whatever_the_name(text in nasty_name()) {
            let key = Keyspace::new("lg", 64).unwrap().key(Kind::Mutex, &name(&text));
            prop_assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key:?}");
        }
    }

    #[test]
    fn ten_kilobytes_of_braces_are_a_name_like_any_other() {
        let keys = Keyspace::new("lg", 64).unwrap();
        let (one, two) = (name(&"{".repeat(10_240)), name(&"}".repeat(10_240)));
        assert_ne!(keys.key(Kind::Mutex, &one), keys.key(Kind::Mutex, &two));
        assert!(Name::new("lock", "x".repeat(MAX_NAME_BYTES)).is_ok());
        let refused = Name::new("lock", "x".repeat(MAX_NAME_BYTES + 1)).unwrap_err();
        assert_eq!(refused.to_string(), "lock: is 16385 bytes long; at most 16384 are allowed");
    }

    #[test]
    fn common_names_stay_readable() {
        let keys = Keyspace::new("lg", 1).unwrap();
        assert_eq!(keys.key(Kind::Coupon, &name("summer:2026")), "lg:{0}:coupon:summer:2026");
        assert_eq!(keys.key(Kind::Mutex, &name("order {7}")), "lg:{0}:mutex:order%20%7B7%7D");
    }

    #[test]
    fn crc16_is_the_one_of_the_redis_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }

    #[test]
    fn names_spread_over_all_partitions() {
        let keys = Keyspace::new("lg", 64).unwrap();
        let mut load = [0_u32; 64];
        for user in 0..64_000 {
            load[usize::from(keys.partition_of(&name(&format!("coupon:{user}"))))] += 1;
        }
        assert!(load.iter().all(|names| (500..1_500).contains(names)), "{load:?}");
    }

    #[test]
    fn a_namespace_cannot_smuggle_a_hash_tag() {
        for namespace in ["", "a{b}", "a:b", "ü", &"x".repeat(33)] {
            assert!(Keyspace::new(namespace, 1).is_err(), "{namespace:?}");
        }
    }
}
