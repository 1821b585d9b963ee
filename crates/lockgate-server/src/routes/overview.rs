//! All that an operator wants to see at once: for the dashboard, and for whoever builds another one.
//!
//! **Promise:** however many watch, this server asks the store once a second for all of them, and not at all when nobody does. At most
//! [`MAX_SHOWN`] of each kind are told; how many more there are is said.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Json as JsonBody;
use axum::extract::State;
use axum::http::HeaderName;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, future, stream};
use lockgate::error::StoreError;
use lockgate::key::Name;
use lockgate::store::{Campaign, CampaignKind, CampaignStatus, MAX_BATCH, Store};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::coupons::CouponBody;
use super::deals::DealBody;
use super::lines::LineBody;
use super::locks::LockStatusBody;
use super::skus::SkuBody;
use crate::actions::{self, ActionBody};
use crate::api::ReadProblems;
use crate::app::AppState;
use crate::auth::App;
use crate::input::Rfc3339;
use crate::problem::Problem;
use crate::sightings::{RefusalCount, SeenLock};

/// How many of each kind are told.
const MAX_SHOWN: usize = 100;

/// How often those who watch are told.
const EVERY: Duration = Duration::from_secs(1);

const KEEP_ALIVE: Duration = Duration::from_secs(15);

pub(crate) fn routes() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(get_overview)).routes(routes!(get_overview_events))
}

/// All that an operator wants to see at once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OverviewBody {
    at: Rfc3339,
    server: ServerBody,
    coupons: Vec<CouponBody>,
    deals: Vec<DealBody>,
    skus: Vec<SkuBody>,
    lines: Vec<LineBody>,
    /// Those that were asked for through this server lately.
    locks: Vec<LockStatusBody>,
    /// Who was refused what by this server, since it started.
    rejections: Vec<RefusalCount>,
    #[schema(value_type = Option<Object>)]
    ledger: Option<Value>,
    /// What admins did lately, the latest first.
    actions: Vec<ActionBody>,
    /// Whether these are the actions of all servers that share the ledger; otherwise, there is none or it does not answer, they are
    /// those of this server since it started.
    actions_of_all: bool,
    more: More,
}

/// Which server this is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ServerBody {
    version: &'static str,
    store: String,
    persistence: String,
}

/// How many more there are than are told, at least.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct More {
    coupons: usize,
    deals: usize,
    skus: usize,
    lines: usize,
}

/// Tells how everything stands.
#[utoipa::path(
    get, path = "/v1/overview", tag = "operations", security((), ("app" = [])),
    responses((status = 200, description = "How everything stands.", body = OverviewBody), ReadProblems),
)]
async fn get_overview(_: App, State(state): State<AppState>) -> Result<JsonBody<OverviewBody>, Problem> {
    Ok(JsonBody(overview(&state).await?))
}

/// Tells how everything stands, once a second, as server-sent events: `overview`, or `away` while the store does not answer.
#[utoipa::path(
    get, path = "/v1/overview/events", tag = "operations", security((), ("app" = [])),
    responses(
        (status = 200, description = "The stream.", content_type = "text/event-stream", body = OverviewBody),
        ReadProblems,
    ),
)]
async fn get_overview_events(_: App, State(state): State<AppState>) -> Response {
    let told = state.watchtower.subscribe(&state);
    let closing = state.closing.clone();
    let events = stream::unfold(told, async |mut told| {
        told.changed().await.ok()?;
        let news = told.borrow_and_update().clone()?;
        Some((Ok::<_, Infallible>(news.event()), told))
    });
    let events = Sse::new(events.take_until(closing.cancelled_owned()));
    let events = events.keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    // Proxies that gather what they pass on would keep the news to themselves.
    ([(HeaderName::from_static("x-accel-buffering"), "no")], events).into_response()
}

/// What is told to all who watch.
#[derive(Clone, Debug)]
enum News {
    Overview(Arc<str>),
    Away,
}

impl News {
    fn event(&self) -> Event {
        match self {
            News::Overview(text) => Event::default().event("overview").data(&**text),
            News::Away => Event::default().event("away").data("{}"),
        }
    }
}

/// Where everybody who watches is told from.
#[derive(Debug)]
pub(crate) struct Watchtower {
    tells: watch::Sender<Option<News>>,
    is_manned: AtomicBool,
}

impl Default for Watchtower {
    fn default() -> Self {
        Self { tells: watch::Sender::new(None), is_manned: AtomicBool::new(false) }
    }
}

impl Watchtower {
    fn subscribe(&self, state: &AppState) -> watch::Receiver<Option<News>> {
        let told = self.tells.subscribe();
        if !self.is_manned.swap(true, Ordering::SeqCst) {
            tokio::spawn(keep_watch(Arc::clone(state)));
        }
        told
    }
}

/// Leaves the tower when it ends, however that comes about: the next who wants to watch mans it again.
struct Post<'a>(&'a Watchtower);

impl Drop for Post<'_> {
    fn drop(&mut self) {
        self.0.is_manned.store(false, Ordering::SeqCst);
    }
}

/// Keeps watch for as long as somebody wants to be told.
async fn keep_watch(state: AppState) {
    let tower = &state.watchtower;
    loop {
        let post = Post(tower);
        tell_those_who_watch(&state).await;
        drop(post);
        // Somebody may have come in between, and have seen that it was manned.
        let is_wanted = !state.closing.is_cancelled() && tower.tells.receiver_count() > 0;
        if !is_wanted || tower.is_manned.swap(true, Ordering::SeqCst) {
            return;
        }
    }
}

/// Tells those who watch, until nobody does or the server stops.
async fn tell_those_who_watch(state: &AppState) {
    let tower = &state.watchtower;
    loop {
        let news = match overview(state).await.map(|body| serde_json::to_string(&body)) {
            Ok(Ok(text)) => News::Overview(text.into()),
            Ok(Err(_)) | Err(_) => News::Away,
        };
        tower.tells.send_replace(Some(news));
        let is_closing = tokio::time::timeout(EVERY, state.closing.cancelled()).await.is_ok();
        if is_closing || tower.tells.receiver_count() == 0 {
            return;
        }
    }
}

async fn overview(state: &AppState) -> Result<OverviewBody, StoreError> {
    let store = state.gate.store().as_ref();
    let about = store.about().await?;
    let all = all_campaigns(store).await?;
    let (coupons, more_coupons) = campaigns(store, &all, CampaignKind::Coupon).await?;
    let (deals, more_deals) = campaigns(store, &all, CampaignKind::Deal).await?;
    let (skus, more_skus) = campaigns(store, &all, CampaignKind::Sku).await?;
    let (lines, more_lines) = lines(store).await?;
    let (actions, actions_of_all) = actions::latest(state).await;
    let name = |campaign: &Campaign| campaign.name.to_string();
    let group = |campaign: &Campaign| campaign.group.as_ref().map(ToString::to_string);
    Ok(OverviewBody {
        at: Rfc3339(state.clock.wall()),
        server: ServerBody {
            version: env!("CARGO_PKG_VERSION"),
            store: about.description,
            persistence: about.persistence.to_string(),
        },
        coupons: coupons.iter().map(|(of, status)| CouponBody::new(name(of), status)).collect(),
        deals: deals.iter().map(|(of, status)| DealBody::new(name(of), status)).collect(),
        skus: skus.iter().map(|(of, status)| SkuBody::new(name(of), group(of), status)).collect(),
        lines,
        locks: locks(state).await?,
        rejections: state.sightings.refusals(),
        ledger: state.ledger.as_ref().map(crate::ledger::LedgerView::to_json),
        actions,
        actions_of_all,
        more: More { coupons: more_coupons, deals: more_deals, skus: more_skus, lines: more_lines },
    })
}

/// The first campaigns of each partition.
async fn all_campaigns(store: &dyn Store) -> Result<Vec<Campaign>, StoreError> {
    let pages = (0..store.partitions()).map(|partition| store.campaign_list(partition, None, MAX_BATCH));
    Ok(future::try_join_all(pages).await?.concat())
}

/// The campaigns of a kind with how they stand, and how many more there are.
async fn campaigns(
    store: &dyn Store,
    all: &[Campaign],
    kind: CampaignKind,
) -> Result<(Vec<(Campaign, CampaignStatus)>, usize), StoreError> {
    let of_kind: Vec<_> = all.iter().filter(|campaign| campaign.kind == kind).collect();
    let more = of_kind.len().saturating_sub(MAX_SHOWN);
    let shown = of_kind.into_iter().take(MAX_SHOWN);
    let read = shown.map(|campaign| async {
        Ok::<_, StoreError>((campaign.clone(), store.campaign_read(campaign).await?))
    });
    let known = future::try_join_all(read).await?.into_iter();
    Ok((known.filter_map(|(campaign, status)| Some((campaign, status?))).collect(), more))
}

async fn lines(store: &dyn Store) -> Result<(Vec<LineBody>, usize), StoreError> {
    let pages = (0..store.partitions()).map(|partition| store.line_list(partition, None, MAX_BATCH));
    let mut all: Vec<Name> = future::try_join_all(pages).await?.concat();
    let more = all.len().saturating_sub(MAX_SHOWN);
    all.truncate(MAX_SHOWN);
    let statuses = future::try_join_all(all.iter().map(|line| store.line_read(line))).await?;
    let known = all.iter().zip(statuses);
    Ok((
        known.filter_map(|(name, status)| Some(LineBody::new(name.to_string(), name, status?))).collect(),
        more,
    ))
}

async fn locks(state: &AppState) -> Result<Vec<LockStatusBody>, StoreError> {
    let seen = state.sightings.locks();
    let known = seen.into_iter().filter_map(|seen| Some((state.gate.mutex(&seen.key).ok()?, seen)));
    let statuses = known.map(|(mutex, SeenLock { key, owner })| async move {
        Ok(LockStatusBody::new(state, key, owner, &mutex.status().await?))
    });
    future::try_join_all(statuses).await
}
