//! The cost of waiting, measured on a real Redis. What is checked is how it grows, not how fast it is.

use std::time::Duration;

use lockgate_lab::lab::cost::{CostOptions, CostReport, Policy, cost};

async fn measure(waiters: u32, hold_ms: u64) -> CostReport {
    let options = CostOptions {
        waiters,
        hold: Duration::from_millis(hold_ms),
        // Long, so that a busy machine does not matter.
        backoff: Duration::from_millis(50),
        rounds: 3,
        redis: None,
    };
    cost(&options, &|_| ()).await.unwrap()
}

fn calls(report: &CostReport, policy: Policy) -> f64 {
    report.policies.iter().find(|cost| cost.policy == policy).unwrap().measured.calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asking_grows_with_waiters_and_time_and_being_told_does_not() {
    let few = measure(4, 200).await;
    let many = measure(16, 200).await;
    let long = measure(4, 600).await;
    for spin in [Policy::SpinEvery, Policy::SpinPausing, Policy::LibrarySpin] {
        let (base, wide, deep) = (calls(&few, spin), calls(&many, spin), calls(&long, spin));
        assert!(wide >= base * 3.0, "{spin:?}: {base} calls of 4, and {wide} of 16");
        assert!(deep >= base * 2.0, "{spin:?}: {base} calls in 200 ms, and {deep} in 600 ms");
    }
    for report in [&few, &many, &long] {
        let waiters = f64::from(report.waiters);
        // One to give it to the next; a busy machine may add one that makes sure.
        assert!((1.0..=2.0).contains(&calls(report, Policy::HandOff)), "{report:?}");
        assert!((2.0..=2.0 + 2.0 * waiters).contains(&calls(report, Policy::Notify)), "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_has_prediction_measurement_and_deviation_of_every_way() {
    let report = measure(3, 60).await;
    let (json, table) = (serde_json::to_value(&report).unwrap(), report.table());
    let policies = json["policies"].as_array().unwrap();
    assert_eq!(policies.len(), Policy::ALL.len());
    for (cost, policy) in policies.iter().zip(&report.policies) {
        assert!(cost["predicted"]["calls"].as_f64().unwrap() >= 1.0, "{cost}");
        assert!(cost["measured"]["calls"].as_f64().unwrap() >= 1.0, "{cost}");
        assert!(cost["measured"]["delay_ms"].is_number() && cost["deviation_percent"].is_number(), "{cost}");
        let is_far = policy.deviation_percent.abs() > 15.0;
        assert_eq!(
            cost["explanation"].is_string(),
            is_far,
            "what is far from the estimate is explained: {cost}"
        );
        assert!(table.contains(policy.title), "{table}");
    }
    assert_eq!(json["policies"][0]["predicted"]["calls"], 6.0);
}
