//! The same random wishes on the embedded store and on a real Redis, side by side: every answer and, in the end, every
//! journal must be the same. Times are left out, because each store goes by its own clock; windows and holds end far away.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lockgate::Gate;
use lockgate::clock::{Clock, Timestamp};
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::store::memory::MemoryStore;
use lockgate::store::{
    Campaign, CampaignChange, CampaignKind, HoldId, HoldWish, IssueWish, JournalChange, JournalPosition,
    OrderItem, OrderWish, PassUse, PurchaseWish, RevokeWish, Sending, SettleWish, Settlement, Store, Terms,
    Token,
};
use lockgate::testing::services::{Persistence, Redis};
use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestRunner};

/// One operation. Small numbers stand for names: few users, requests, holds and campaigns, so that they meet.
#[derive(Clone, Debug)]
enum Step {
    Open {
        campaign: usize,
        quantity: u64,
        per_user: Option<u64>,
        window: Window,
        line: Option<usize>,
    },
    Change {
        campaign: usize,
        change: CampaignChange,
    },
    Issue {
        wishes: Vec<(usize, usize, Shown)>,
    },
    Buy {
        wishes: Vec<(usize, usize, u64, Option<usize>, Shown)>,
    },
    Hold {
        wishes: Vec<(usize, usize, usize, u64, Shown)>,
    },
    Settle {
        wishes: Vec<(usize, usize, usize, Settlement)>,
    },
    Revoke {
        wishes: Vec<(usize, usize, u64)>,
    },
    Order {
        orders: Vec<NumberedOrder>,
    },
    ReadCampaign {
        campaign: usize,
    },
    ReadShare {
        campaign: usize,
        user: usize,
    },
    ReadHold {
        campaign: usize,
        hold: usize,
    },
    ReadOrder {
        order: usize,
    },
    /// The last step that was sent, once more; with its own number or with a lower one.
    Again {
        is_late: bool,
    },
}

/// A pass that is shown: its line, its number, whether it is the user's own, and whether it is over.
type Shown = Option<(usize, u128, bool, bool)>;

/// An order's id, its user, and its articles with their quantities.
type NumberedOrder = (usize, usize, Vec<(usize, u64)>);

#[derive(Clone, Copy, Debug)]
enum Window {
    Always,
    FarAhead,
    LongOver,
}

/// Two of each kind.
const CAMPAIGNS: usize = 6;
const USERS: usize = 4;

// The fake clock and the real one agree on what lies in these years.
const LONG_AGO: Timestamp = Timestamp::from_millis(1);
const FAR_AHEAD: Timestamp = Timestamp::from_millis(7_000_000_000_000);

fn kind_of(campaign: usize) -> CampaignKind {
    CampaignKind::ALL[campaign / 2]
}

fn of_kind(kind: CampaignKind) -> impl Strategy<Value = usize> {
    (0..CAMPAIGNS).prop_filter("of another kind", move |campaign| kind_of(*campaign) == kind)
}

fn quantity() -> impl Strategy<Value = u64> {
    prop_oneof![9 => 1_u64..5, 1 => Just((1 << 53) - 1)]
}

fn change() -> impl Strategy<Value = CampaignChange> {
    prop_oneof![
        3 => Just(CampaignChange::Pause),
        6 => Just(CampaignChange::Resume),
        1 => Just(CampaignChange::Close),
        3 => (0_u64..4).prop_map(|by| CampaignChange::Restock { by }),
        1 => Just(CampaignChange::Restock { by: 1 << 53 }),
    ]
}

/// Few passes, so that they come again; most of them do.
fn shown() -> impl Strategy<Value = Shown> {
    let is_own = prop::bool::weighted(0.9);
    let is_over = prop::bool::weighted(0.1);
    prop_oneof![1 => Just(None), 4 => (demanded(), 0_u128..12, is_own, is_over).prop_map(Some)]
}

fn demanded() -> impl Strategy<Value = usize> {
    prop_oneof![6 => Just(0_usize), 1 => Just(1)]
}

fn several<T: Debug>(one: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(one, 0..5)
}

fn step() -> impl Strategy<Value = Step> {
    let window =
        prop_oneof![8 => Just(Window::Always), 1 => Just(Window::FarAhead), 1 => Just(Window::LongOver)];
    let settlement = prop_oneof![Just(Settlement::Confirm), Just(Settlement::Cancel)];
    let open =
        (0..CAMPAIGNS, 0_u64..15, proptest::option::of(1_u64..6), window, proptest::option::of(demanded()));
    let wish_to_buy =
        (of_kind(CampaignKind::Deal), 0..USERS, quantity(), proptest::option::of(0_usize..4), shown());
    let wish_to_hold = (0..CAMPAIGNS, 0_usize..8, 0..USERS, quantity(), shown());
    let order = (0_usize..4, 0..USERS, prop::collection::vec((of_kind(CampaignKind::Sku), quantity()), 1..4));
    prop_oneof![
        4 => open.prop_map(|(campaign, quantity, per_user, window, line)| {
            Step::Open { campaign, quantity, per_user, window, line }
        }),
        2 => (0..CAMPAIGNS, change()).prop_map(|(campaign, change)| Step::Change { campaign, change }),
        4 => several((of_kind(CampaignKind::Coupon), 0..USERS, shown())).prop_map(|wishes| Step::Issue { wishes }),
        4 => several(wish_to_buy).prop_map(|wishes| Step::Buy { wishes }),
        4 => several(wish_to_hold).prop_map(|wishes| Step::Hold { wishes }),
        4 => several((0..CAMPAIGNS, 0_usize..8, 0..USERS, settlement)).prop_map(|wishes| Step::Settle { wishes }),
        3 => several((0..CAMPAIGNS, 0..USERS, 0_u64..5)).prop_map(|wishes| Step::Revoke { wishes }),
        4 => several(order).prop_map(|orders| Step::Order { orders }),
        1 => (0..CAMPAIGNS).prop_map(|campaign| Step::ReadCampaign { campaign }),
        1 => (0..CAMPAIGNS, 0..USERS).prop_map(|(campaign, user)| Step::ReadShare { campaign, user }),
        1 => (0..CAMPAIGNS, 0_usize..8).prop_map(|(campaign, hold)| Step::ReadHold { campaign, hold }),
        1 => (0_usize..4).prop_map(|order| Step::ReadOrder { order }),
        2 => any::<bool>().prop_map(|is_late| Step::Again { is_late }),
    ]
}

/// All campaigns first, so that few wishes meet one that nobody has opened; sometimes not.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let openings = (2_u64..15, proptest::option::of(2_u64..6), proptest::option::of(demanded()));
    let openings = prop::collection::vec(openings, CAMPAIGNS);
    let openings = openings.prop_map(|terms| {
        let window = Window::Always;
        let opening = |(campaign, (quantity, per_user, line))| Step::Open {
            campaign,
            quantity,
            per_user,
            window,
            line,
        };
        terms.into_iter().enumerate().map(opening).collect::<Vec<_>>()
    });
    (prop_oneof![4 => openings, 1 => Just(Vec::new())], prop::collection::vec(step(), 1..60)).prop_map(
        |(mut steps, more)| {
            steps.extend(more);
            steps
        },
    )
}

/// One case: names of its own, and a slot in which it sends.
struct Case {
    run: Token,
    next_number: u64,
}

impl Case {
    /// Names that nobody else uses, with something in them that a key format could stumble over.
    fn name(&self, what: &str, number: usize) -> Name {
        Name::new("name", format!("{what}:{number} {{\n{}", self.run)).unwrap()
    }

    fn campaign(&self, campaign: usize) -> Campaign {
        let group = Some(self.name("group", 0));
        Campaign { group, ..Campaign::new(kind_of(campaign), self.name("campaign", campaign)) }
    }

    fn user(&self, user: usize) -> Name {
        self.name("user", user)
    }

    fn pass(&self, shown: Shown, user: usize) -> Option<PassUse> {
        let (line, jti, is_own, is_over) = shown?;
        let user = if is_own { self.user(user) } else { self.user(user + 1) };
        let expires_at = if is_over { LONG_AGO } else { FAR_AHEAD };
        Some(PassUse { line: self.name("line", line), user, jti: Token::from_bits(jti), expires_at })
    }

    /// Every campaign has holds of its own with the same ids.
    fn hold(hold: usize) -> HoldId {
        HoldId::from_bits(hold as u128)
    }

    fn order(&self, (id, user, items): &NumberedOrder) -> Option<OrderWish> {
        let item =
            |(sku, quantity): &(usize, u64)| OrderItem { sku: self.campaign(*sku), quantity: *quantity };
        // A sum that cannot be counted is no order.
        OrderWish::new(self.name("order", *id), self.user(*user), items.iter().map(item).collect()).ok()
    }

    /// What a store says to a step, without its times.
    async fn ask(&self, store: &dyn Store, sending: &Sending, step: &Step) -> String {
        let answer = match step {
            Step::Open { campaign, quantity, per_user, window, line } => {
                let campaign = self.campaign(*campaign);
                let per_user = per_user.filter(|_| campaign.kind != CampaignKind::Sku);
                let line = line.filter(|_| campaign.kind != CampaignKind::Sku);
                let terms = terms(*quantity, per_user, *window);
                let terms = match line {
                    Some(line) => terms.demanding_pass_of(self.name("line", line)),
                    None => terms,
                };
                said(&store.campaign_open(sending, &campaign, &terms).await)
            }
            Step::Change { campaign, change } => {
                said(&store.campaign_change(sending, &self.campaign(*campaign), *change).await)
            }
            Step::Issue { wishes } => {
                let wish = |(coupon, user, shown): &(usize, usize, Shown)| IssueWish {
                    coupon: self.campaign(*coupon),
                    user: self.user(*user),
                    pass: self.pass(*shown, *user),
                };
                said(&store.coupon_issue(sending, &wishes.iter().map(wish).collect::<Vec<_>>()).await)
            }
            Step::Buy { wishes } => {
                let wish =
                    |(deal, user, quantity, request, shown): &(usize, usize, u64, Option<usize>, Shown)| {
                        PurchaseWish {
                            deal: self.campaign(*deal),
                            user: self.user(*user),
                            quantity: *quantity,
                            request: request.map(|request| self.name("request", request)),
                            pass: self.pass(*shown, *user),
                        }
                    };
                said(&store.deal_purchase(sending, &wishes.iter().map(wish).collect::<Vec<_>>()).await)
            }
            Step::Hold { wishes } => {
                let wish =
                    |(campaign, hold, user, quantity, shown): &(usize, usize, usize, u64, Shown)| HoldWish {
                        campaign: self.campaign(*campaign),
                        id: Self::hold(*hold),
                        user: self.user(*user),
                        quantity: if kind_of(*campaign) == CampaignKind::Coupon { 1 } else { *quantity },
                        ttl: Duration::from_secs(3_600),
                        pass: self.pass(*shown, *user),
                    };
                said(&store.hold_place(sending, &wishes.iter().map(wish).collect::<Vec<_>>()).await)
            }
            Step::Settle { wishes } => {
                let wish =
                    |(campaign, hold, user, settlement): &(usize, usize, usize, Settlement)| SettleWish {
                        campaign: self.campaign(*campaign),
                        id: Self::hold(*hold),
                        user: self.user(*user),
                        settlement: *settlement,
                    };
                said(&store.hold_settle(sending, &wishes.iter().map(wish).collect::<Vec<_>>()).await)
            }
            Step::Revoke { wishes } => {
                let wish = |(campaign, user, seq): &(usize, usize, u64)| RevokeWish {
                    campaign: self.campaign(*campaign),
                    user: self.user(*user),
                    seq: *seq,
                };
                said(&store.grant_revoke(sending, &wishes.iter().map(wish).collect::<Vec<_>>()).await)
            }
            Step::Order { orders } => {
                let orders: Vec<_> = orders.iter().filter_map(|order| self.order(order)).collect();
                said(&store.order_place(sending, &orders).await)
            }
            Step::ReadCampaign { campaign } => said(&store.campaign_read(&self.campaign(*campaign)).await),
            Step::ReadShare { campaign, user } => {
                said(&store.share_read(&self.campaign(*campaign), &self.user(*user)).await)
            }
            Step::ReadHold { campaign, hold } => {
                said(&store.hold_read(&self.campaign(*campaign), &Self::hold(*hold)).await)
            }
            Step::ReadOrder { order } => {
                said(&store.order_read(&self.name("group", 0), &self.name("order", *order)).await)
            }
            Step::Again { .. } => unreachable!("stands for another step"),
        };
        without_times(&answer)
    }

    /// The step and the sending that are meant.
    fn next<'a>(&mut self, step: &'a Step, sent: Option<(&'a Step, u64)>) -> Option<(&'a Step, Sending)> {
        let sending = |number| Sending { process: self.run, slot: 0, number };
        match (step, sent) {
            (Step::Again { is_late }, Some((step, number))) => {
                Some((step, sending(number - u64::from(*is_late && number > 1))))
            }
            (Step::Again { .. }, None) => None,
            _ => {
                self.next_number += 1;
                Some((step, Sending { process: self.run, slot: 0, number: self.next_number }))
            }
        }
    }

    /// What a store's journal says of each campaign of this case, one change per number and without its times; forgotten
    /// there afterwards, so that the next case reads only its own.
    async fn take_journal(&self, store: &dyn Store) -> Vec<Vec<(u64, String)>> {
        let partition = store.partition_of(self.campaign(0).home());
        let entries = store.journal_read(partition, JournalPosition::START, usize::MAX).await.unwrap();
        if let Some(last) = entries.last() {
            store.journal_trim(partition, last.position).await.unwrap();
        }
        let told_of = |campaign: Campaign| {
            let entries = entries.iter().filter(move |entry| entry.campaign == campaign);
            entries.flat_map(|entry| one_by_one(entry.rev, &entry.change)).collect()
        };
        (0..CAMPAIGNS).map(|campaign| told_of(self.campaign(campaign))).collect()
    }
}

/// Coupons that were issued in one step may stand in one entry or in several.
fn one_by_one(rev: u64, change: &JournalChange) -> Vec<(u64, String)> {
    let changes = match change {
        JournalChange::Issued { seq, users, passes } => (*seq..)
            .zip(users)
            .enumerate()
            .map(|(place, (seq, user))| {
                let (users, passes) = (vec![user.clone()], passes.get(place).copied().into_iter().collect());
                format!("{:?}", JournalChange::Issued { seq, users, passes })
            })
            .collect(),
        other => vec![format!("{other:?}")],
    };
    (rev..).zip(changes).map(|(rev, change)| (rev, without_times(&change))).collect()
}

fn terms(quantity: u64, per_user: Option<u64>, window: Window) -> Terms {
    let terms = Terms::new(quantity).unwrap();
    let terms = match window {
        Window::Always => terms,
        Window::FarAhead => terms.between(Some(FAR_AHEAD), None).unwrap(),
        Window::LongOver => terms.between(None, Some(LONG_AGO)).unwrap(),
    };
    match per_user {
        Some(limit) => terms.per_user(limit).unwrap(),
        None => terms,
    }
}

fn said<T: Debug>(answer: &Result<T, StoreError>) -> String {
    format!("{answer:?}")
}

/// Leaves out what a hold's end is printed as: it depends on the store's clock.
fn without_times(text: &str) -> String {
    let mut pieces = text.split("expires_at: ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |kept, piece| {
        let rest = piece.find([',', '}']).map_or("", |end| &piece[end..]);
        kept + "expires_at: ?" + rest
    })
}

async fn both_say_the_same(
    memory: &dyn Store,
    redis: &dyn Store,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut case = Case { run: Token::random(), next_number: 0 };
    let mut sent = None;
    for (place, step) in steps.iter().enumerate() {
        let is_new = !matches!(step, Step::Again { .. });
        let Some((step, sending)) = case.next(step, sent) else { continue };
        let answers = [case.ask(memory, &sending, step).await, case.ask(redis, &sending, step).await];
        prop_assert_eq!(&answers[0], &answers[1], "step {}: {:?} as {:?}", place, step, sending);
        let is_read = matches!(
            step,
            Step::ReadCampaign { .. }
                | Step::ReadShare { .. }
                | Step::ReadHold { .. }
                | Step::ReadOrder { .. }
        );
        if is_new && !is_read {
            sent = Some((step, sending.number));
        }
    }
    for campaign in (0..CAMPAIGNS).map(|campaign| case.campaign(campaign)) {
        let statuses = (memory.campaign_read(&campaign).await, redis.campaign_read(&campaign).await);
        prop_assert_eq!(statuses.0.unwrap(), statuses.1.unwrap(), "{:?}", campaign);
    }
    prop_assert_eq!(case.take_journal(memory).await, case.take_journal(redis).await);
    Ok(())
}

#[test]
fn memory_and_redis_give_the_same_answers_and_write_the_same_journal() {
    static REDIS: OnceLock<Redis> = OnceLock::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let redis = REDIS.get_or_init(|| Redis::start(Persistence::Off).unwrap());
    let gate = runtime.block_on(Gate::open(&redis.url())).unwrap();
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Clock::fake()));
    let config = Config {
        cases: 64,
        max_shrink_iters: 2_000,
        // What failed once is tried again first: its seed stands beside this file, and in the message.
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        source_file: Some(file!()),
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&steps(), |steps| runtime.block_on(both_say_the_same(&*memory, &**gate.store(), &steps)))
        .unwrap_or_else(|why| panic!("{why}"));
}
