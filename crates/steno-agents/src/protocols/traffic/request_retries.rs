//! Detects requests that retry a failed one.
//!
//! Some clients count attempts in a header, or send the same idempotency key each time. Otherwise a request is a retry
//! if it equals, byte for byte, one with a last attempt that failed with a retryable error.

use std::collections::HashMap;

use blake3::{Hash, Hasher};

use super::exchange::ApiExchange;
use super::piece::HttpHeaders;

/// A request that retries an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestRetry {
    /// The attempt's number, from 1.
    pub(super) attempt: u64,
    /// The exchange of the previous attempt, if recorded.
    pub(super) previous_exchange: Option<String>,
}

/// The last attempt of each request.
#[derive(Clone, Debug, Default)]
pub(super) struct RetryLog {
    attempts: HashMap<Hash, RequestAttempt>,
}

/// The last attempt of a request.
#[derive(Clone, Debug)]
struct RequestAttempt {
    exchange: String,
    number: u64,
    outcome: AttemptOutcome,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// Answered, with the provider's response id if there is one.
    Answered(Option<String>),
    /// Failed with a retryable error: no connection, a broken stream, too many requests, or a server error.
    Failed,
    /// Refused: a retry would fail too.
    Refused,
}

/// Identifies a request by its idempotency key, or by the hash of its content.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestKey {
    hash: Hash,
    /// Whether the client sent the key. The provider then bills all attempts once.
    is_idempotency_key: bool,
}

impl RequestKey {
    pub(super) fn new(exchange: &ApiExchange) -> Self {
        let mut hasher = Hasher::new();
        for part in [&exchange.method, &exchange.upstream, &exchange.path] {
            hasher.update(part.as_bytes()).update(b"\0");
        }
        let key_headers = ["idempotency-key", "amz-sdk-invocation-id"];
        let key = key_headers.iter().find_map(|name| find_header(&exchange.request_headers, name));
        // Multipart boundaries differ in each attempt.
        let measured = exchange.measured_request.as_ref();
        let content = measured.map(|body| body.content_blake3.as_ref().unwrap_or(&body.blake3));
        let content = content.map_or(exchange.request_bytes.as_slice(), |hash| hash.as_bytes());
        hasher.update(key.map_or(content, str::as_bytes));
        Self { hash: hasher.finalize(), is_idempotency_key: key.is_some() }
    }
}

impl RetryLog {
    /// The retry that a request is, if any.
    pub(super) fn find_retry(
        &self,
        key: RequestKey,
        headers: &HttpHeaders,
    ) -> Option<RequestRetry> {
        let counted = attempt_from_headers(headers).filter(|attempt| *attempt > 1);
        let before = self.attempts.get(&key.hash).filter(|before| {
            before.outcome == AttemptOutcome::Failed || key.is_idempotency_key || counted.is_some()
        });
        let attempt = counted.or(before.map(|before| before.number + 1))?;
        Some(RequestRetry {
            attempt,
            previous_exchange: before.map(|before| before.exchange.clone()),
        })
    }

    /// Whether the provider has already billed this response to an attempt with the same key.
    pub(super) fn is_already_billed(&self, key: RequestKey, id: Option<&str>) -> bool {
        key.is_idempotency_key
            && self.attempts.get(&key.hash).is_some_and(|before| match &before.outcome {
                AttemptOutcome::Answered(answered) => id.is_none() || answered.as_deref() == id,
                _ => false,
            })
    }

    /// Records how an attempt ended.
    pub(super) fn record_attempt(&mut self, key: RequestKey, exchange: &str, end: AttemptEnd<'_>) {
        let number = end.retry.map_or(1, |retry| retry.attempt);
        let attempt =
            RequestAttempt { exchange: exchange.to_owned(), number, outcome: end.outcome };
        if attempt.outcome == AttemptOutcome::Failed || key.is_idempotency_key {
            self.attempts.insert(key.hash, attempt);
        } else {
            self.attempts.remove(&key.hash);
        }
    }
}

/// The end of an attempt.
pub(super) struct AttemptEnd<'a> {
    pub(super) retry: Option<&'a RequestRetry>,
    pub(super) outcome: AttemptOutcome,
}

/// The outcome for a status, a response id and an error.
pub(super) fn attempt_outcome(
    status: Option<u16>,
    id: Option<&str>,
    error: Option<&str>,
) -> AttemptOutcome {
    match (status, error) {
        (Some(400..=407 | 410..=424 | 426..=428 | 430..=499), _) => AttemptOutcome::Refused,
        (Some(200..=299), None) => AttemptOutcome::Answered(id.map(str::to_owned)),
        _ => AttemptOutcome::Failed,
    }
}

/// The attempt's number from the client's headers.
fn attempt_from_headers(headers: &HttpHeaders) -> Option<u64> {
    let stainless = || find_header(headers, "x-stainless-retry-count")?.parse::<u64>().ok();
    // For example `attempt=2; max=3`.
    let amazon = || {
        let fields = find_header(headers, "amz-sdk-request")?;
        let attempt = fields.split(';').find_map(|field| field.trim().strip_prefix("attempt="));
        attempt?.parse().ok()
    };
    stainless().map(|retries| retries.saturating_add(1)).or_else(amazon)
}

fn find_header<'a>(headers: &'a HttpHeaders, header: &str) -> Option<&'a str> {
    let field = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header));
    field.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: &str, headers: &[(&str, &str)]) -> ApiExchange {
        let headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        ApiExchange {
            request_bytes: body.as_bytes().to_vec(),
            request_headers: headers.collect(),
            ..ApiExchange::default()
        }
    }

    /// The retries found for a list of attempts and their statuses.
    fn attempts(requests: &[(ApiExchange, Option<u16>)]) -> Vec<Option<(u64, Option<String>)>> {
        let mut log = RetryLog::default();
        let mut found = Vec::new();
        for (at, (exchange, status)) in requests.iter().enumerate() {
            let key = RequestKey::new(exchange);
            let retry = log.find_retry(key, &exchange.request_headers);
            let outcome = attempt_outcome(*status, None, None);
            log.record_attempt(
                key,
                &format!("x{at}"),
                AttemptEnd { retry: retry.as_ref(), outcome },
            );
            found.push(retry.map(|retry| (retry.attempt, retry.previous_exchange)));
        }
        found
    }

    #[test]
    fn the_same_request_after_a_failure_is_a_retry() {
        let same = || asked("{}", &[]);
        let of = |at: &str| Some(at.to_owned());
        assert_eq!(
            attempts(&[
                (same(), Some(429)),
                (same(), None),
                (same(), Some(200)),
                (same(), Some(200))
            ]),
            [None, Some((2, of("x0"))), Some((3, of("x1"))), None]
        );
        assert_eq!(attempts(&[(same(), Some(400)), (same(), Some(200))]), [None, None]);
        assert_eq!(attempts(&[(same(), Some(529)), (asked("[]", &[]), Some(200))]), [None, None]);
    }

    #[test]
    fn headers_count_attempts() {
        let stainless = asked("{}", &[("X-Stainless-Retry-Count", "2")]);
        assert_eq!(attempts(&[(stainless, Some(200))]), [Some((3, None))]);
        let first = asked("{}", &[("x-stainless-retry-count", "0")]);
        assert_eq!(attempts(&[(first, Some(200))]), [None]);
        let amazon = |attempt: &str| {
            asked(attempt, &[("amz-sdk-invocation-id", "i"), ("amz-sdk-request", attempt)])
        };
        assert_eq!(
            attempts(&[
                (amazon("attempt=1; max=3"), Some(500)),
                (amazon("attempt=2; max=3"), Some(200))
            ]),
            [None, Some((2, Some("x0".to_owned())))]
        );
    }
}
