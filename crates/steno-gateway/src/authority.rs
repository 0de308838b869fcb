//! A certificate authority for one run of the proxy. Its key is made when the run begins and never leaves the memory.

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

/// How long its certificates are valid. Nothing that is longer would be of use: the key is gone when the run ends.
const VALID_DAYS: i64 = 90;

/// Signs certificates for the hosts whose requests are recorded.
pub struct CertificateAuthority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// The key of all hosts' certificates.
    host_key: KeyPair,
    configs: Mutex<HashMap<String, Arc<ServerConfig>>>,
}

/// The authority's keys or certificates could not be made.
#[derive(Debug, thiserror::Error)]
#[error("could not make a certificate")]
pub struct CertificateError(#[from] rcgen::Error);

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateAuthority")
    }
}

impl CertificateAuthority {
    /// Makes an authority of its own for this run.
    pub fn new() -> Result<Self, CertificateError> {
        let key = KeyPair::generate()?;
        let mut params = valid_params(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "Steno recording proxy, one run");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = params.self_signed(&key)?.der().clone();
        let issuer = Issuer::new(params, key);
        Ok(Self { issuer, certificate, host_key: KeyPair::generate()?, configs: Mutex::default() })
    }

    /// The certificates that a program has to trust, as PEM: the machine's own, those of `others`, and this authority's.
    pub fn trust_bundle(&self, others: &[String]) -> String {
        let own = std::iter::once(self.certificate.clone());
        let machine = rustls_native_certs::load_native_certs().certs;
        let mut bundle: String = machine.into_iter().chain(own).map(|der| pem(&der)).collect();
        for other in others {
            bundle += other.trim_end();
            bundle.push('\n');
        }
        bundle
    }

    /// How to speak TLS as a host.
    pub(crate) fn server_config(&self, host: &str) -> Result<Arc<ServerConfig>, CertificateError> {
        let mut configs = lock_unpoisoned(&self.configs);
        if let Some(config) = configs.get(host) {
            return Ok(Arc::clone(config));
        }
        let mut params = valid_params(vec![host.to_owned()])?;
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

fn valid_params(names: Vec<String>) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    let now = OffsetDateTime::now_utc();
    // Clocks of machines differ.
    params.not_before = now - Duration::DAY;
    params.not_after = now + Duration::days(VALID_DAYS);
    Ok(params)
}

fn pem(certificate: &CertificateDer<'_>) -> String {
    let text = BASE64.encode(certificate);
    let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}
