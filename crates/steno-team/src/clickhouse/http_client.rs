//! ClickHouse's HTTP interface: a query, and rows as the body of the request.

use std::fmt;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::runtime::Runtime;

use crate::clickhouse_url::ClickHouseUrl;
use crate::postgres_remote::PostgresPassword;
use crate::postgres_remote::tls_settings::TlsSettings;
use crate::team_error::TeamError;

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How long to wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// How much of an error message is shown.
const MAX_REASON_CHARS: usize = 300;

/// A client of one database.
pub(super) struct HttpClient {
    runtime: Runtime,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: ClickHouseUrl,
    password: Option<PostgresPassword>,
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("url", &self.url).finish_non_exhaustive()
    }
}

impl HttpClient {
    pub(super) fn new(
        url: &ClickHouseUrl,
        password: Option<&PostgresPassword>,
    ) -> Result<Self, TeamError> {
        let failed = |reason: String| TeamError::Connection { remote: url.to_string(), reason };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.to_string()))?;
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(TlsSettings::default().client_config().map_err(failed)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Self { runtime, client, url: url.clone(), password: password.cloned() })
    }

    /// Runs a query.
    pub(super) fn run(&self, action: &'static str, sql: &str) -> Result<Vec<u8>, TeamError> {
        let place = format!("{}/?database={}", self.url.origin, self.url.database);
        self.post(action, place, sql.as_bytes().to_vec())
    }

    /// Runs a query on data.
    pub(super) fn send(
        &self,
        action: &'static str,
        sql: &str,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, TeamError> {
        let (origin, database) = (&self.url.origin, &self.url.database);
        let place = format!("{origin}/?database={database}&query={}", percent_encode(sql));
        self.post(action, place, data)
    }

    fn post(
        &self,
        action: &'static str,
        place: String,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, TeamError> {
        let remote = self.url.to_string();
        let unreachable = |reason: String| TeamError::Connection { remote: remote.clone(), reason };
        let mut request = Request::post(place).header("X-ClickHouse-User", &self.url.user);
        if let Some(PostgresPassword(password)) = &self.password {
            request = request.header("X-ClickHouse-Key", password);
        }
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.map_err(|_| {
            unreachable("the password has other characters than a header".to_owned())
        })?;
        let exchange = async {
            let response = self.client.request(request).await.map_err(|error| describe(&error))?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(|error| describe(&error))?;
            Ok::<_, String>((status, body.to_bytes()))
        };
        let (status, answer) = self.runtime.block_on(async {
            match tokio::time::timeout(ANSWER_TIMEOUT, exchange).await {
                Ok(answered) => answered.map_err(unreachable),
                Err(_) => Err(unreachable("no answer in ten minutes".to_owned())),
            }
        })?;
        if status.is_success() {
            return Ok(answer.to_vec());
        }
        let reason = String::from_utf8_lossy(&answer);
        Err(TeamError::Database { remote, action, reason: short_reason(&reason) })
    }
}

/// The first sentence of an error. ClickHouse repeats the query after it, which has texts.
fn short_reason(answer: &str) -> String {
    let line = answer.lines().next().unwrap_or_default();
    let end = [": While executing", ": (at row", "Stack trace", "In scope", ": (while reading"];
    let end = end.iter().filter_map(|mark| line.find(mark)).min().unwrap_or(line.len());
    line[..end].chars().take(MAX_REASON_CHARS).collect::<String>().trim_end().to_owned()
}

/// What an error and its causes say.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(below) = cause {
        text.push_str(&format!(": {below}"));
        cause = below.source();
    }
    text
}

/// A text as the value of a parameter in a URL.
fn percent_encode(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' => out.push(byte.into()),
            byte => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_does_not_repeat_the_query() {
        let answer = "Code: 27. DB::Exception: Cannot parse input: (at row 1)\nsecret text";
        assert_eq!(short_reason(answer), "Code: 27. DB::Exception: Cannot parse input");
        assert_eq!(percent_encode("a (b)="), "a%20%28b%29%3D");
    }
}
