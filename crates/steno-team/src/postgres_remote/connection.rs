//! Connects to a database, with TLS unless it is on this machine.

use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{PostgresPassword, describe};
use crate::team_error::TeamError;

/// How long to wait for a server.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(15);

/// Connects. Without `sslmode` in the URL, only a server on this machine may be without TLS.
pub(crate) fn connect(url: &str, password: Option<&PostgresPassword>) -> Result<Client, TeamError> {
    let failed = |reason: String| TeamError::Connection { remote: url.to_owned(), reason };
    let mut config: Config = url.parse().map_err(|_| failed("the URL is invalid".to_owned()))?;
    config.application_name("steno").connect_timeout(CONNECT_TIMEOUT);
    if let Some(PostgresPassword(password)) = password {
        config.password(password);
    }
    if !url.contains("sslmode=") && !is_local(&config) {
        config.ssl_mode(SslMode::Require);
    }
    let client = match config.get_ssl_mode() {
        SslMode::Disable => config.connect(NoTls),
        _ if is_local(&config) && !url.contains("sslmode=") => config.connect(NoTls),
        _ => config.connect(tls_connector().map_err(failed)?),
    };
    client.map_err(|error| failed(describe(&error)))
}

fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        #[cfg(unix)]
        Host::Unix(_) => true,
    })
}

fn tls_connector() -> Result<MakeRustlsConnect, String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
