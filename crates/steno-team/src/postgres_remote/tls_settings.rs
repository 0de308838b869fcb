//! The settings of TLS in a database's URL, by the names that libpq gives them.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// What the URL says about TLS.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TlsSettings {
    /// `disable`, `allow`, `prefer`, `require`, `verify-ca` or `verify-full`.
    pub(super) mode: Option<String>,
    /// The only certificates that may sign the server's.
    root_certificate: Option<PathBuf>,
    /// The certificate that this client shows.
    certificate: Option<PathBuf>,
    /// Its key.
    key: Option<PathBuf>,
}

impl TlsSettings {
    /// Takes the settings out of a URL. Returns the rest of the URL.
    pub(super) fn split_url(url: &str) -> (Self, String) {
        let (place, options) = url.split_once('?').unwrap_or((url, ""));
        let (mut settings, mut rest) = (Self::default(), Vec::new());
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let path = Some(PathBuf::from(decode_percent(value)));
            match name {
                "sslmode" => settings.mode = Some(value.to_owned()),
                "sslrootcert" => settings.root_certificate = path,
                "sslcert" => settings.certificate = path,
                "sslkey" => settings.key = path,
                _ => rest.push(option),
            }
        }
        let rest = match rest.is_empty() {
            true => place.to_owned(),
            false => format!("{place}?{}", rest.join("&")),
        };
        (settings, rest)
    }

    /// Whether the URL names a certificate.
    pub(super) fn has_certificates(&self) -> bool {
        self.root_certificate.is_some() || self.certificate.is_some() || self.key.is_some()
    }

    /// Reads the certificates.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect, String> {
        self.client_config().map(MakeRustlsConnect::new)
    }

    /// The settings of a client. The server's certificate and name are always checked.
    pub(crate) fn client_config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(self.trusted_roots()?);
        match (&self.certificate, &self.key) {
            (None, None) => Ok(config.with_no_client_auth()),
            (Some(certificate), Some(key)) => {
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| format!("sslkey: {}: {error}", key.display()))?;
                let chain = read_certificates("sslcert", certificate)?;
                config.with_client_auth_cert(chain, key).map_err(|error| error.to_string())
            }
            (Some(_), None) => Err("the URL has sslcert, but no sslkey".to_owned()),
            (None, Some(_)) => Err("the URL has sslkey, but no sslcert".to_owned()),
        }
    }

    /// The certificates in the URL, or else those of this system.
    fn trusted_roots(&self) -> Result<RootCertStore, String> {
        let mut roots = RootCertStore::empty();
        let Some(path) = &self.root_certificate else {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            return Ok(roots);
        };
        for certificate in read_certificates("sslrootcert", path)? {
            let added = roots.add(certificate);
            added.map_err(|error| format!("sslrootcert: {}: {error}", path.display()))?;
        }
        Ok(roots)
    }
}

/// The certificates of a file, of which there must be one.
fn read_certificates(
    option: &str,
    path: &std::path::Path,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |reason: String| format!("{option}: {}: {reason}", path.display());
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found: Vec<_> =
        read.map_err(|error: rustls::pki_types::pem::Error| failed(error.to_string()))?;
    match found.is_empty() {
        true => Err(failed("no certificate in the file".to_owned())),
        false => Ok(found),
    }
}

/// Replaces `%41` by `A`.
fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(|_| *first == b'%') {
            Some(code) => {
                bytes.push(code);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_taken_out_of_the_url() {
        let url = "postgres://ada@h/steno?sslmode=verify-full&connect_timeout=5&sslrootcert=/a%20b/ca.pem";
        let (settings, rest) = TlsSettings::split_url(url);
        assert_eq!(rest, "postgres://ada@h/steno?connect_timeout=5");
        assert_eq!(settings.mode.as_deref(), Some("verify-full"));
        assert_eq!(settings.root_certificate, Some(PathBuf::from("/a b/ca.pem")));
        assert!(settings.has_certificates());
        let (none, rest) = TlsSettings::split_url("postgres://ada@h/steno");
        assert_eq!((none, rest.as_str()), (TlsSettings::default(), "postgres://ada@h/steno"));
    }

    #[test]
    fn a_certificate_needs_its_key() {
        let (settings, _) = TlsSettings::split_url("postgres://ada@h/steno?sslcert=/ada.pem");
        assert!(settings.connector().is_err_and(|reason| reason.contains("no sslkey")));
        let (settings, _) = TlsSettings::split_url("postgres://ada@h/steno?sslrootcert=/none.pem");
        assert!(settings.connector().is_err_and(|reason| reason.contains("/none.pem")));
    }
}
