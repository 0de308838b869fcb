//! Limits the number of JSON values held in memory: a value of two bytes may need hundreds.

use serde::de::DeserializeOwned;

use super::string_end::find_string_end;
use crate::problem::json_error_reason;

/// Maximum number of values in one record or document. Each may need hundreds of bytes of memory.
const MAX_JSON_VALUES: usize = 2 << 20;

/// Parses JSON, or returns the reason for the failure.
pub fn parse_limited<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    check_value_count(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| json_error_reason(&error))
}

/// Returns an error if a JSON text has too many values.
pub fn check_value_count(bytes: &[u8]) -> Result<(), String> {
    // Most texts are too short, or have too few commas even with those in strings.
    let may_be_many = bytes.len() > 2 * MAX_JSON_VALUES
        && memchr::memchr_iter(b',', bytes).nth(MAX_JSON_VALUES).is_some();
    if may_be_many && find_commas(bytes).nth(MAX_JSON_VALUES).is_some() {
        return Err(format!("more than {MAX_JSON_VALUES} values"));
    }
    Ok(())
}

/// Finds the commas outside strings.
fn find_commas(mut rest: &[u8]) -> impl Iterator<Item = ()> {
    std::iter::from_fn(move || {
        loop {
            let at = memchr::memchr2(b'"', b',', rest)?;
            let is_comma = rest[at] == b',';
            rest = &rest[at + 1..];
            if is_comma {
                return Some(());
            }
            rest = &rest[find_string_end(rest, &mut false)?..];
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    #[test]
    fn only_so_many_values_are_held() {
        let numbers = format!("[{}1]", "1,".repeat(MAX_JSON_VALUES + 1));
        assert_eq!(
            parse_limited::<Value>(numbers.as_bytes()),
            Err(format!("more than {MAX_JSON_VALUES} values"))
        );
        let text = format!(r#"["\"{}\\",1]"#, ",,".repeat(MAX_JSON_VALUES));
        assert!(parse_limited::<Value>(text.as_bytes()).is_ok());
    }
}
