//! Server certificates: those that the machine or `SSL_CERT_FILE` trusts are accepted.
//!
//! A private server often has a self-signed certificate, marked as a CA and trusted directly. rustls rejects it,
//! because a CA certificate must not be a server's; OpenSSL and curl accept it. Here it is accepted if exactly this
//! certificate is trusted. Its name and validity dates are still checked.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// The TLS configuration for connections to upstreams.
pub(crate) fn tls_config() -> ClientConfig {
    let trusted = rustls_native_certs::load_native_certs().certs;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted.iter().cloned());
    let roots = Arc::new(roots);
    match WebPkiServerVerifier::builder(Arc::clone(&roots)).build() {
        Ok(verifier) => {
            let verifier = Arc::new(TrustedCertificateVerifier { verifier, trusted });
            let builder = ClientConfig::builder().dangerous();
            builder.with_custom_certificate_verifier(verifier).with_no_client_auth()
        }
        // Without any certificates, upstreams without TLS still work.
        Err(_) => ClientConfig::builder().with_root_certificates(roots).with_no_client_auth(),
    }
}

/// Verifies as rustls does, and also accepts a directly trusted CA certificate.
#[derive(Debug)]
struct TrustedCertificateVerifier {
    verifier: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for TrustedCertificateVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(error) if is_ca_as_server(&error) && self.trusted.contains(end_entity) => {
                // rustls checks the dates before it returns this error.
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

/// Whether a certificate was rejected only because it is marked as a CA.
fn is_ca_as_server(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(cause)) = error else { return false };
    matches!(cause.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}
