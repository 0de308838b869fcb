//! A program that is recorded through a forward proxy: what it is told, so that it uses the proxy and trusts its
//! certificates. Nothing outside of the program changes.

use std::ffi::OsString;
use std::io::Write;
use std::sync::{Arc, PoisonError};

use steno_gateway::{CertificateAuthority, ForwardProxy, RecordedHosts, Upstreams};
use tempfile::NamedTempFile;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;

/// Variables that name the proxy for TLS, and that for plain HTTP.
const HTTPS_PROXY_VARIABLES: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const HTTP_PROXY_VARIABLES: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
/// Those that name one for everything. They are set only where they were.
const ALL_PROXY_VARIABLES: [&str; 2] = ["ALL_PROXY", "all_proxy"];
/// Those that name hosts to which none leads.
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Variables that name a file of certificates to trust, by the programs that read them.
const CERTIFICATE_VARIABLES: [&str; 13] = [
    // OpenSSL, Go and rustls
    "SSL_CERT_FILE",
    // Node.js and Bun
    "NODE_EXTRA_CA_CERTS",
    // Python
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "HTTPLIB2_CA_CERTS",
    // curl, Git and Cargo
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    // others
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "CODEX_CA_CERTIFICATE",
    "NIX_SSL_CERT_FILE",
];

/// What a program is told that is recorded through the proxy.
pub(super) struct ProxiedLaunch {
    pub(super) forward: ForwardProxy,
    /// The certificates to trust; the file goes with the run.
    certificates: NamedTempFile,
}

impl ProxiedLaunch {
    /// Makes the run's certificate authority, and writes what the program has to trust.
    pub(super) fn prepare(upstreams: &Upstreams, hosts: Vec<String>) -> Result<Self, CommandError> {
        check_system_proxy()?;
        let authority = Arc::new(CertificateAuthority::new().map_err(CommandError::user)?);
        let mut certificates =
            tempfile::Builder::new().prefix("steno-certificates-").suffix(".pem").tempfile()?;
        certificates
            .write_all(authority.trust_bundle(&read_configured_certificates()).as_bytes())?;
        certificates.flush()?;
        let hosts = RecordedHosts::new(upstreams, hosts);
        let forward = ForwardProxy { authority, hosts, unread: Arc::default() };
        Ok(Self { forward, certificates })
    }

    /// The variables for a proxy at `address`.
    pub(super) fn variables(&self, address: &str) -> Vec<(String, OsString)> {
        let mut variables: Vec<(String, OsString)> = Vec::new();
        let mut set = |name: &str, value: OsString| variables.push((name.to_owned(), value));
        HTTPS_PROXY_VARIABLES.iter().for_each(|name| set(name, address.into()));
        HTTP_PROXY_VARIABLES.iter().for_each(|name| set(name, address.into()));
        let stated =
            ALL_PROXY_VARIABLES.iter().filter(|name| ProcessEnvironment::variable(name).is_some());
        stated.for_each(|name| set(name, address.into()));
        NO_PROXY_VARIABLES.iter().for_each(|name| set(name, self.filter_no_proxy(name).into()));
        set("NODE_USE_ENV_PROXY", "1".into());
        CERTIFICATE_VARIABLES.iter().for_each(|name| set(name, self.certificates.path().into()));
        variables
    }

    /// What the user can do when no request was recorded.
    pub(super) fn no_request_hint(&self) -> String {
        let unread = self.forward.unread.lock().unwrap_or_else(PoisonError::into_inner);
        if unread.is_empty() {
            return "the program made no connection through the proxy: it may not read HTTPS_PROXY"
                .to_owned();
        }
        let hosts: Vec<_> = unread.iter().map(String::as_str).collect();
        format!(
            "connections to these hosts were not read; record one with --proxy-host HOST: {}",
            hosts.join(", ")
        )
    }

    /// The user's own exceptions, but for those that would lead past the proxy to a recorded host.
    fn filter_no_proxy(&self, name: &str) -> String {
        let stated = ProcessEnvironment::variable(name).and_then(|hosts| hosts.into_string().ok());
        let stated = stated.unwrap_or_default();
        let kept = stated
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty() && !self.forward.hosts.is_bypassed_by(entry));
        kept.collect::<Vec<_>>().join(",")
    }
}

/// Makes sure that connections can go on through the proxy that the machine needs, if it needs one.
fn check_system_proxy() -> Result<(), CommandError> {
    for name in HTTPS_PROXY_VARIABLES.iter().chain(&ALL_PROXY_VARIABLES) {
        let Some(stated) = ProcessEnvironment::variable(name) else { continue };
        let stated = stated.to_string_lossy();
        let scheme = stated.split_once("://").map_or("http", |(scheme, _)| scheme);
        if !scheme.eq_ignore_ascii_case("http") {
            let error =
                format!("{name} names a proxy that cannot be used: it is no http:// address");
            return Err(
                CommandError::user(error).hint(format!("unset {name}, or run without --proxy"))
            );
        }
        return Ok(());
    }
    Ok(())
}

/// The certificates that the user's variables name. Those of `SSL_CERT_FILE` count as the machine's.
fn read_configured_certificates() -> Vec<String> {
    let mut files: Vec<OsString> = CERTIFICATE_VARIABLES[1..]
        .iter()
        .filter_map(|name| ProcessEnvironment::variable(name))
        .collect();
    files.sort();
    files.dedup();
    files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}
