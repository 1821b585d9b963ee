//! What Prometheus reads at `GET /metrics`: the library's metrics and the server's.

use std::time::Duration;

use lockgate::clock::Clock;
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tokio_util::sync::CancellationToken;

/// How often what has been recorded is put into buckets; not to do it lets memory grow until somebody scrapes.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// From a decision in memory to a call that waits for a lock.
const SECONDS: [f64; 16] =
    [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// From the first batch to an evening in the line.
const SECONDS_IN_LINE: [f64; 12] =
    [1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0];

/// From a caller alone to as many as one call takes.
const CALLERS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1_024.0];

/// Everything that has been counted. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Metrics(PrometheusHandle);

impl Metrics {
    /// Counts everything in this process from now on, so to be called before a gate is opened, and once.
    ///
    /// # Errors
    ///
    /// When the process has a recorder already.
    pub fn install() -> Result<Self, String> {
        let recorder = recorder().map_err(|why| why.to_string())?;
        let metrics = Self(recorder.handle());
        metrics::set_global_recorder(recorder).map_err(|why| why.to_string())?;
        let started_at = Clock::system().wall().as_micros();
        #[expect(clippy::cast_precision_loss, reason = "exact to the microsecond for another two centuries")]
        metrics::gauge!("process_start_time_seconds").set(started_at as f64 / 1e6);
        Ok(metrics)
    }

    /// Those of a recorder that is not the process's, for tests; see [`metrics::with_local_recorder`].
    #[doc(hidden)]
    pub fn with_recorder() -> Result<(Self, PrometheusRecorder), String> {
        let recorder = recorder().map_err(|why| why.to_string())?;
        Ok((Self(recorder.handle()), recorder))
    }

    /// In Prometheus' text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }

    pub(crate) async fn look_after(self, stop: CancellationToken) {
        while tokio::time::timeout(UPKEEP_EVERY, stop.cancelled()).await.is_err() {
            self.0.run_upkeep();
        }
    }
}

fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let in_line = Matcher::Full("lockgate_line_wait_seconds".to_owned());
    let in_a_call = Matcher::Full("lockgate_stock_batch_size".to_owned());
    let builder = PrometheusBuilder::new().set_buckets(&SECONDS)?;
    let builder = builder.set_buckets_for_metric(in_line, &SECONDS_IN_LINE)?;
    Ok(builder.set_buckets_for_metric(in_a_call, &CALLERS)?.build_recorder())
}
