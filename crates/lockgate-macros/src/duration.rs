//! `"3s"`, to milliseconds.

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// How long to wait when nothing is said.
pub(crate) const DEFAULT_WAIT_MS: u64 = 5 * SECOND;
/// For how long to lease when nothing is said.
pub(crate) const DEFAULT_LEASE_MS: u64 = 10 * SECOND;

const LONGEST_LEASE_MS: u64 = 24 * HOUR;

/// How many milliseconds `text` means; the error says what to write.
pub(crate) fn milliseconds(text: &str) -> Result<u64, String> {
    let unit = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let number = &text[..text.len() - unit.len()];
    let factor = match unit {
        _ if number.is_empty() => return Err(not_a_duration(text)),
        "ms" => 1,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return Err(not_a_duration(text)),
    };
    let number: Option<u64> = number.parse().ok();
    number.and_then(|number| number.checked_mul(factor)).ok_or_else(|| too_long(text))
}

/// How many milliseconds `text` means as a lease, which is neither nothing nor for ever.
pub(crate) fn lease_milliseconds(text: &str) -> Result<u64, String> {
    match milliseconds(text)? {
        0 => Err(format!("`{text}` is too short for a lease; write \"1ms\" to \"24h\"")),
        lease if lease > LONGEST_LEASE_MS => {
            Err(format!("`{text}` is too long for a lease; write \"1ms\" to \"24h\""))
        }
        lease => Ok(lease),
    }
}

fn not_a_duration(text: &str) -> String {
    format!("`{text}` is not a duration; write a number and a unit: `ms`, `s`, `m` or `h`, as in \"3s\"")
}

fn too_long(text: &str) -> String {
    format!("`{text}` is too long; write a smaller number, as in \"3s\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_known() {
        assert_eq!(milliseconds("250ms"), Ok(250));
        assert_eq!(milliseconds("3s"), Ok(3_000));
        assert_eq!(milliseconds("2m"), Ok(120_000));
        assert_eq!(milliseconds("1h"), Ok(3_600_000));
        assert_eq!(milliseconds("0s"), Ok(0));
        assert_eq!(milliseconds("007s"), Ok(7_000));
    }

    #[test]
    fn everything_else_is_told_what_to_write() {
        for wrong in
            ["", "3", "s", "3x", "3S", "3 s", " 3s", "3s ", "3sec", "1.5s", "-3s", "+3s", "3s5ms", "٣s"]
        {
            let problem = milliseconds(wrong).unwrap_err();
            assert!(
                problem.starts_with(&format!("`{wrong}` is not a duration; write a number")),
                "{problem}"
            );
        }
    }

    #[test]
    fn a_number_that_cannot_be_counted_is_too_long_rather_than_wrapped() {
        for wrong in ["18446744073709551615s", "18446744073709551616ms"] {
            assert!(milliseconds(wrong).unwrap_err().contains("is too long"), "{wrong}");
        }
        assert_eq!(milliseconds("18446744073709551615ms"), Ok(u64::MAX));
    }

    #[test]
    fn a_lease_is_a_millisecond_to_a_day() {
        assert_eq!(lease_milliseconds("1ms"), Ok(1));
        assert_eq!(lease_milliseconds("24h"), Ok(86_400_000));
        assert!(lease_milliseconds("0s").unwrap_err().contains("too short"));
        assert!(lease_milliseconds("86400001ms").unwrap_err().contains("too long"));
        assert!(lease_milliseconds("3x").unwrap_err().contains("not a duration"));
    }
}
