//! Connects to a database, with TLS unless it is on this machine.

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};

use super::tls_settings::TlsSettings;
use super::{PostgresPassword, describe};
use crate::team_error::TeamError;

/// How long to wait for a server.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(15);

/// Connects. Without `sslmode` in the URL, only a server on this machine may be without TLS.
pub(crate) fn connect(url: &str, password: Option<&PostgresPassword>) -> Result<Client, TeamError> {
    let failed = |reason: String| TeamError::Connection { remote: url.to_owned(), reason };
    let (tls, rest) = TlsSettings::split_url(url);
    let mut config: Config = rest.parse().map_err(|_| failed("the URL is invalid".to_owned()))?;
    config.application_name("steno").connect_timeout(CONNECT_TIMEOUT);
    if let Some(PostgresPassword(password)) = password {
        config.password(password);
    }
    config.ssl_mode(match tls.mode.as_deref() {
        Some("disable") => SslMode::Disable,
        Some("allow" | "prefer") => SslMode::Prefer,
        Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
        Some(other) => return Err(failed(format!("unknown sslmode: {other}"))),
        None if is_local(&config) && !tls.has_certificates() => SslMode::Disable,
        None => SslMode::Require,
    });
    let client = match config.get_ssl_mode() {
        SslMode::Disable => config.connect(NoTls),
        _ => config.connect(tls.connector().map_err(failed)?),
    };
    client.map_err(|error| failed(explain_failure(describe(&error))))
}

fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

/// Says what is wrong with a certificate or a password.
fn explain_failure(reason: String) -> String {
    let explanations = [
        ("password missing", "the server asks for a password"),
        (
            "UnknownIssuer",
            "the server's certificate is not trusted; name its issuer with sslrootcert",
        ),
        ("NotValidForName", "the server's certificate is for another host name"),
        ("certificate not valid for name", "the server's certificate is for another host name"),
        ("Expired", "the server's certificate has expired"),
    ];
    let found = explanations.iter().find(|(sign, _)| reason.contains(sign));
    found.map_or(reason.clone(), |(_, explanation)| format!("{explanation} ({reason})"))
}
