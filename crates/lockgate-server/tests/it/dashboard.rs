//! The files of the dashboard, as they are served.

use std::path::Path;

use crate::client::Client;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/dashboard");

/// All files below a folder, by their path in it.
fn files(folder: &Path, within: &str) -> Vec<String> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{within}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            all.extend(files(&entry.path(), &format!("{name}/")));
        } else {
            all.push(name);
        }
    }
    all
}

#[tokio::test]
async fn every_file_is_served_as_what_it_is_and_under_the_policy() {
    let client = Client::admin().as_(None);
    let all = files(Path::new(FOLDER), "");
    assert!(all.len() > 10, "{all:?}");
    for file in all {
        let path = if file == "index.html" { "/".to_owned() } else { format!("/{file}") };
        let (status, headers, text) = client.text(&path).await;
        assert_eq!(status, 200, "{path}");
        assert_eq!(text, std::fs::read_to_string(format!("{FOLDER}/{file}")).unwrap(), "{path}");
        let kind = match file.rsplit('.').next().unwrap() {
            "html" => "text/html; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(headers["content-type"], kind, "{path}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cache-control"], "no-cache");
        // Nothing is fetched from elsewhere, and nothing would be allowed to run that stands in the page.
        let outside = text.replace("http://www.w3.org/", "");
        assert!(!outside.contains("http://") && !outside.contains("https://"), "{path}");
        assert!(!text.contains("eval(") && !text.contains("innerHTML"), "{path}");
    }
    let (_, _, page) = client.text("/").await;
    assert!(!page.contains("<script>") && !page.contains(" style=") && !page.contains(" onclick="), "{page}");
}
