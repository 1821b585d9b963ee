//! What the server says, for people.

use comfy_table::{Table, presets};
use serde_json::Value;

/// A table of these members of each.
pub(crate) fn table(things: &Value, columns: &[&str], more: u64) -> String {
    let rows = things.as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return "none".to_owned();
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(columns.iter().map(|column| column.replace('_', " ")));
    for row in rows {
        table.add_row(columns.iter().map(|column| plain(row.get(*column))));
    }
    // Without the blank that it begins lines with, and those that it ends them with.
    let lines = table.lines().map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned());
    let mut text = lines.collect::<Vec<_>>().join("\n");
    if more > 0 {
        text.push_str(&format!("\nand {more} more, which the server does not list; ask for one with show"));
    }
    text
}

/// All members, one per line: these first, in this order.
pub(crate) fn members(thing: &Value, first: &[&str]) -> String {
    let Some(object) = thing.as_object() else { return plain(Some(thing)) };
    let named = first.iter().filter_map(|name| object.get_key_value(*name));
    let others = object.iter().filter(|(name, _)| !first.contains(&name.as_str()));
    let all: Vec<_> = named.chain(others).collect();
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&String, &Value)| {
        format!("{:width$}  {}", name.replace('_', " "), plain(Some(value)))
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A value as a person writes it. Control characters could do things to a terminal.
pub(crate) fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.escape_debug().to_string(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_come_in_the_order_that_was_asked_for_and_none_is_left_out() {
        let shown =
            members(&json!({ "a": 1, "state": "open", "id": "x\u{7}", "line": null }), &["id", "state"]);
        assert_eq!(shown, "id     x\\u{7}\nstate  open\na      1\nline   -");
    }

    #[test]
    fn a_table_says_when_it_is_not_all() {
        let things = json!([{ "id": "a", "held": true }, { "id": "long", "held": false }]);
        assert_eq!(table(&things, &["id", "held", "at"], 0), "id    held  at\na     yes   -\nlong  no    -");
        assert!(
            table(&things, &["id"], 3)
                .ends_with("and 3 more, which the server does not list; ask for one with show")
        );
        assert_eq!(table(&json!([]), &["id"], 0), "none");
    }
}
