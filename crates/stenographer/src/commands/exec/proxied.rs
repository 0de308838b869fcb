//! Prepares a program for recording through a forward proxy: sets the variables for the proxy and its certificates.
//! Changes nothing outside of that program.

use std::ffi::OsString;
use std::io::Write;
use std::sync::{Arc, PoisonError};

use steno_gateway::{CertificateAuthority, ForwardProxy, RecordedHosts, Upstreams};
use tempfile::NamedTempFile;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;

/// Variables for the HTTPS proxy, and for the plain HTTP proxy.
const HTTPS_PROXY_VARIABLES: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const HTTP_PROXY_VARIABLES: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
/// Variables for a proxy for all protocols. They are changed only if they are set.
const ALL_PROXY_VARIABLES: [&str; 2] = ["ALL_PROXY", "all_proxy"];
/// Variables for hosts that bypass the proxy.
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Variables for a file with trusted certificates, by the programs that read them.
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

/// Settings for a program that is recorded through the proxy.
pub(super) struct ProxiedLaunch {
    pub(super) forward: ForwardProxy,
    /// File with the trusted certificates; deleted after the run.
    certificates: NamedTempFile,
}

impl ProxiedLaunch {
    /// Creates the run's certificate authority and writes the trust file.
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

    /// Returns the variables for a proxy at `address`.
    pub(super) fn variables(&self, address: &str) -> Vec<(String, OsString)> {
        let mut variables: Vec<(String, OsString)> = Vec::new();
        let mut set = |name: &str, value: OsString| variables.push((name.to_owned(), value));
        HTTPS_PROXY_VARIABLES.iter().for_each(|name| set(name, address.into()));
        HTTP_PROXY_VARIABLES.iter().for_each(|name| set(name, address.into()));
        let configured =
            ALL_PROXY_VARIABLES.iter().filter(|name| ProcessEnvironment::variable(name).is_some());
        configured.for_each(|name| set(name, address.into()));
        NO_PROXY_VARIABLES.iter().for_each(|name| set(name, self.filter_no_proxy(name).into()));
        set("NODE_USE_ENV_PROXY", "1".into());
        CERTIFICATE_VARIABLES.iter().for_each(|name| set(name, self.certificates.path().into()));
        variables
    }

    /// Returns a hint for a run without any recorded request.
    pub(super) fn no_request_hint(&self) -> String {
        let unread = self.forward.unread.lock().unwrap_or_else(PoisonError::into_inner);
        if unread.is_empty() {
            return "the program made no connection through the proxy; it may not read HTTPS_PROXY"
                .to_owned();
        }
        let hosts: Vec<_> = unread.iter().map(String::as_str).collect();
        format!("not recorded: {}; use --proxy-host HOST to record one", hosts.join(", "))
    }

    /// Returns the user's exceptions without those that would bypass the proxy for a recorded host.
    fn filter_no_proxy(&self, name: &str) -> String {
        let configured =
            ProcessEnvironment::variable(name).and_then(|hosts| hosts.into_string().ok());
        let configured = configured.unwrap_or_default();
        let kept = configured
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty() && !self.forward.hosts.is_bypassed_by(entry));
        kept.collect::<Vec<_>>().join(",")
    }
}

/// Checks that the machine's own proxy, if it has one, can be used.
fn check_system_proxy() -> Result<(), CommandError> {
    for name in HTTPS_PROXY_VARIABLES.iter().chain(&ALL_PROXY_VARIABLES) {
        let Some(configured) = ProcessEnvironment::variable(name) else { continue };
        let configured = configured.to_string_lossy();
        let scheme = configured.split_once("://").map_or("http", |(scheme, _)| scheme);
        if !scheme.eq_ignore_ascii_case("http") {
            let error = format!("unsupported proxy in {name}: not an http:// address");
            return Err(
                CommandError::user(error).hint(format!("unset {name}, or run without --proxy"))
            );
        }
        return Ok(());
    }
    Ok(())
}

/// Reads the certificates in the user's variables. Those of `SSL_CERT_FILE` count as the system's.
fn read_configured_certificates() -> Vec<String> {
    let mut files: Vec<OsString> = CERTIFICATE_VARIABLES[1..]
        .iter()
        .filter_map(|name| ProcessEnvironment::variable(name))
        .collect();
    files.sort();
    files.dedup();
    files.iter().filter_map(|file| std::fs::read_to_string(file).ok()).collect()
}
