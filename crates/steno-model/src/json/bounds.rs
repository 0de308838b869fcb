//! JSON of which only so much is held: a few bytes may make a value of hundreds.

use serde::de::DeserializeOwned;

use crate::problem::json_reason;

/// The most values that are read of one record or document: each may take hundreds of bytes of memory.
const VALUES: usize = 2 << 20;

/// Parses JSON, or says why it is none.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    check(bytes)?;
    serde_json::from_slice(bytes).map_err(|error| json_reason(&error))
}

/// Tells if there are too many values in a text to be held.
pub fn check(bytes: &[u8]) -> Result<(), String> {
    // Most texts are too short for that, or have too few commas even with those in strings.
    let may_be_many =
        bytes.len() > 2 * VALUES && memchr::memchr_iter(b',', bytes).nth(VALUES).is_some();
    if may_be_many && commas(bytes).nth(VALUES).is_some() {
        return Err(format!("more than {VALUES} values"));
    }
    Ok(())
}

/// The commas outside of strings.
fn commas(mut rest: &[u8]) -> impl Iterator<Item = ()> {
    std::iter::from_fn(move || {
        loop {
            let at = memchr::memchr2(b'"', b',', rest)?;
            let is_comma = rest[at] == b',';
            rest = &rest[at + 1..];
            if is_comma {
                return Some(());
            }
            rest = &rest[string_end(rest)?..];
        }
    })
}

/// Where a string ends whose first quote was passed: after the other one.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Value;

    #[test]
    fn only_so_many_values_are_held() {
        let numbers = format!("[{}1]", "1,".repeat(VALUES + 1));
        assert_eq!(
            from_slice::<Value>(numbers.as_bytes()),
            Err(format!("more than {VALUES} values"))
        );
        let text = format!(r#"["\"{}\\",1]"#, ",,".repeat(VALUES));
        assert!(from_slice::<Value>(text.as_bytes()).is_ok());
    }
}
