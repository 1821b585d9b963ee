//! The dashboard for Grafana asks for metrics that there are.

use std::collections::BTreeSet;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Every `lockgate_…` in a text.
fn names(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("lockgate_").map(|(at, _)| &text[at..]);
    let name = |rest: &str| rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
    starts.map(name).collect()
}

/// Every metric that a source makes: the names in `counter!("…"` and its like, and in constants.
fn made_in(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let quoted = code.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
    quoted.flat_map(|line| line.split('"').skip(1).step_by(2).flat_map(names).collect::<Vec<_>>()).collect()
}

/// Every name in the sources below a folder.
fn names_below(folder: &Path, all: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names_below(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.extend(made_in(&std::fs::read_to_string(path).unwrap()));
        }
    }
}

#[test]
fn every_metric_that_it_shows_is_one_of_ours() {
    let shown = names(&std::fs::read_to_string(format!("{ROOT}/packaging/grafana.json")).unwrap());
    assert!(shown.len() > 15, "{shown:?}");
    let mut ours = BTreeSet::new();
    for krate in ["lockgate", "lockgate-server"] {
        names_below(Path::new(&format!("{ROOT}/crates/{krate}/src")), &mut ours);
    }
    // What the exporter makes of a histogram.
    let known = |name: &String| {
        let base =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        ours.contains(name) || ours.contains(base)
    };
    let unknown: Vec<_> = shown.iter().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "there are no such metrics: {unknown:?}");
}
