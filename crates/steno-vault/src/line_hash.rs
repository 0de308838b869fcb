//! The hash chain of log lines: each line starts with a hash over the previous line's hash and its own body.

/// The hash before the first line.
pub(crate) const FIRST_LINE_HASH: LineHash = LineHash([b'0'; LineHash::HEX_DIGITS]);

/// The damage of a line with another hash than its chain demands.
pub(crate) const CHANGED_LINE: &str = "a record was changed, or one is missing before it";

/// The hash of a line: 128 bits of blake3 over the previous hash and the line's body, in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineHash([u8; LineHash::HEX_DIGITS]);

impl LineHash {
    const HEX_DIGITS: usize = 32;
    /// The bytes before the hash.
    pub const LINE_PREFIX: &[u8] = b"{\"sum\":\"";
    pub(crate) const LINE_SUFFIX: &[u8] = b"\",";
    /// Offset of the body in a line.
    pub(crate) const BODY_OFFSET: usize =
        Self::LINE_PREFIX.len() + Self::HEX_DIGITS + Self::LINE_SUFFIX.len();

    /// The hash of the next line with this body.
    pub(crate) fn next_hash(&self, body: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0).update(body);
        let hex = hasher.finalize().to_hex();
        let mut digits = [0; Self::HEX_DIGITS];
        digits.copy_from_slice(&hex.as_bytes()[..Self::HEX_DIGITS]);
        Self(digits)
    }

    /// Splits a line into its stated hash and its body.
    pub(crate) fn split_line(line: &[u8]) -> Option<(Self, &[u8])> {
        let rest = line.strip_prefix(Self::LINE_PREFIX)?;
        let (digits, rest) = rest.split_at_checked(Self::HEX_DIGITS)?;
        let body = rest.strip_prefix(Self::LINE_SUFFIX)?;
        Some((Self(digits.try_into().ok()?), body))
    }

    /// Appends a line with this body to `out`. Returns its hash.
    pub(crate) fn append_line(&self, body: &[u8], out: &mut Vec<u8>) -> Self {
        let hash = self.next_hash(body);
        for part in [Self::LINE_PREFIX, &hash.0, Self::LINE_SUFFIX, body, b"\n"] {
            out.extend_from_slice(part);
        }
        hash
    }

    pub(crate) fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or("?")
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        text.as_bytes().try_into().ok().map(Self)
    }
}

/// Checks the hash chain of a log, line by line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineHashChain {
    /// The hash that the last line states.
    stated: LineHash,
    /// The hash computed for it.
    computed: LineHash,
}

impl LineHashChain {
    /// The chain before the first line.
    pub(crate) const START: Self = Self::after(FIRST_LINE_HASH);

    /// The chain after a line with this hash.
    pub(crate) const fn after(hash: LineHash) -> Self {
        Self { stated: hash, computed: hash }
    }

    /// The hash that the last line states.
    pub(crate) fn last_hash(&self) -> LineHash {
        self.stated
    }

    /// Whether a line is unchanged and follows the previous one. The chain continues with it either way.
    pub(crate) fn check(&mut self, line: &[u8]) -> bool {
        let Some((hash, body)) = LineHash::split_line(line) else { return false };
        // If only the hash of the previous line is damaged, this line is still valid.
        let valid = [self.stated.next_hash(body), self.computed.next_hash(body)];
        (self.stated, self.computed) = (hash, valid[0]);
        valid.contains(&hash)
    }
}
