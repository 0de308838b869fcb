//! A request's body as it is recorded: decompressed, and without secrets.

use std::borrow::Cow;

use steno_agents::protocols::traffic::body_decoder::BodyDecoder;
use steno_agents::protocols::traffic::body_format::BodyFormat;
use steno_agents::protocols::traffic::secrets::TrafficSecrets;

use crate::request_body::BodyKind;

/// A redacted body, and the secrets known after it.
pub(crate) struct RedactedBody {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_decoded: bool,
    pub(crate) redactions: u64,
    /// The secrets from before, and those in the body's fields.
    pub(crate) secrets: TrafficSecrets,
}

impl RedactedBody {
    pub(crate) fn new(mut secrets: TrafficSecrets, kind: &BodyKind, body: &[u8]) -> Self {
        let decoded = BodyDecoder::decode_all(&kind.coding, body);
        let is_decoded = decoded.is_some();
        let mut bytes = Cow::Borrowed(decoded.as_deref().unwrap_or(body));
        let mut redactions = 0;
        if kind.fields == BodyFormat::Form {
            let (form, count) = secrets.redact_form(&bytes);
            (bytes, redactions) = (Cow::Owned(form), count);
        }
        let mut filter = secrets.body_filter_for(&kind.fields);
        let mut clean = filter.push(&bytes);
        clean.extend(filter.finish());
        redactions += filter.redactions();
        Self { bytes: clean, is_decoded, redactions, secrets: filter.into_secrets() }
    }
}
