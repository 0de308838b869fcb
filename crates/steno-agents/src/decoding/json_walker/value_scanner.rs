//! Finds the end of a JSON value in a stream of chunks.

use steno_model::json::string_end::find_string_end;

/// The state inside a value.
#[derive(Default)]
pub(super) struct JsonValueScanner {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    in_scalar: bool,
}

impl JsonValueScanner {
    /// Scans the next bytes of the value. Returns how many belong to it, and whether it ends with them.
    pub(super) fn scan_bytes(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                let Some(length) = find_string_end(&bytes[at..], &mut self.is_escaped) else {
                    return (bytes.len(), false);
                };
                at += length;
                self.in_string = false;
                if self.depth == 0 {
                    return (at, true);
                }
                continue;
            }
            let is_token = ends_scalar(bytes[at]);
            match bytes[at] {
                _ if self.in_scalar && is_token => return (at, true),
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                _ if is_token && self.depth == 0 => return (at, true),
                b'}' | b']' => self.depth -= 1,
                _ => self.in_scalar = self.depth == 0,
            }
            at += 1;
            if is_token && self.depth == 0 && !self.in_string {
                return (at, true);
            }
        }
        (at, false)
    }

    /// Whether the value may end at the end of the input.
    pub(super) fn is_scalar(&self) -> bool {
        self.in_scalar
    }
}

/// Whether a byte ends a number or literal.
fn ends_scalar(byte: u8) -> bool {
    matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':') || byte.is_ascii_whitespace()
}
