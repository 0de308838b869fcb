//! A certificate authority for one run of the proxy. Its key is created when the run starts and never leaves memory.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::{Duration, OffsetDateTime};

use crate::locking::lock_unpoisoned;

/// How long certificates are valid. The key is gone when the run ends, so a longer time is of no use.
const VALID_DAYS: i64 = 90;

/// Signs certificates for recorded hosts.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// The key of the certificates of all hosts.
    host_key: KeyPair,
    configs: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

/// Creating a key or certificate failed.
#[derive(Debug, thiserror::Error)]
#[error("could not create a certificate")]
pub struct CertificateError(#[from] rcgen::Error);

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateAuthority")
    }
}

impl CertificateAuthority {
    /// Creates an authority with a new key.
    pub fn new() -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let mut params = certificate_params(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "Steno recording proxy, one run");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.der().clone();
        let issuer = Issuer::new(params, key);
        Ok(Self { issuer, certificate, host_key: KeyPair::generate()?, configs: Mutex::default() })
    }

    /// The certificates that a program must trust, as PEM: those of the machine, those in `others`, and the
    /// authority's own.
    pub fn trust_bundle(&self, others: &[String]) -> String {
        let own = std::iter::once(self.certificate.clone());
        let machine = rustls_native_certs::load_native_certs().certs;
        let mut bundle: String =
            machine.into_iter().chain(own).map(|der| encode_pem(&der)).collect();
        for other in others {
            bundle += other.trim_end();
            bundle.push('\n');
        }
        bundle
    }

    /// The TLS configuration for a host. It is created once for each host and then cached.
    pub(crate) fn server_config(&self, host: &str) -> Result<Arc<ServerConfig>, CertificateError> {
        let mut configs = lock_unpoisoned(&self.configs);
        if let Some(config) = configs.get(host) {
            return Ok(Arc::clone(config));
        }
        let mut params = certificate_params(vec![host.to_owned()])?;
        params.distinguished_name.push(DnType::CommonName, host);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = params.signed_by(&self.host_key, &self.issuer)?;
        let key = PrivatePkcs8KeyDer::from(self.host_key.serialize_der());
        let chain = vec![certificate.der().clone(), self.certificate.clone()];
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from(key))
            .expect("the key is the one that was signed");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let config = Arc::new(config);
        configs.insert(host.to_owned(), Arc::clone(&config));
        Ok(config)
    }
}

fn certificate_params(names: Vec<String>) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    let now = OffsetDateTime::now_utc();
    // Allow for clocks that differ.
    params.not_before = now - Duration::DAY;
    params.not_after = now + Duration::days(VALID_DAYS);
    Ok(params)
}

fn encode_pem(certificate: &CertificateDer<'_>) -> String {
    let text = BASE64.encode(certificate);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
