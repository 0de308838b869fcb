//! Opens a bucket by its URL.
//!
//! Credentials come in as options, under the names of the environment variables of each provider.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use steno_cipher::AgeIdentity;

use crate::bucket_remote::BucketRemote;
use crate::bucket_remote::bucket_objects::BucketObjects;
use crate::bucket_remote::key_database::KeyDatabase;
use crate::bucket_remote::key_objects::KeyObjects;
use crate::bucket_remote::session_keys::SessionKeys;
use crate::postgres_remote::PostgresPassword;
use crate::team_error::TeamError;

/// How long one request may take. A segment over a slow line needs minutes.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(900);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Options of a provider, such as `aws_access_key_id`. They are never shown.
#[derive(Clone, Default)]
pub struct BucketOptions(pub Vec<(String, String)>);

impl fmt::Debug for BucketOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BucketOptions")
    }
}

/// What is needed to use a bucket.
#[derive(Debug)]
pub struct BucketAccess {
    /// The URL: `s3://bucket/prefix`, `gs://` or `az://`.
    pub url: String,
    /// Credentials and other options of the provider.
    pub options: BucketOptions,
    /// Where the keys of sessions are.
    pub keys: KeyAccess,
    /// This machine's own folder for the remote.
    pub folder: PathBuf,
}

/// What is needed to use the keys of sessions.
#[derive(Debug)]
pub enum KeyAccess {
    /// A database.
    Database {
        /// Its URL.
        url: String,
        /// The password of this user.
        password: Option<PostgresPassword>,
    },
    /// The bucket itself.
    Bucket {
        /// The name under which this user pushes.
        user: String,
        /// Secret keys, of which one opens the key of the team.
        identities: Vec<AgeIdentity>,
    },
}

impl BucketRemote {
    /// Connects to the database with the keys, if there is one. The bucket itself is not asked yet.
    pub fn connect(access: BucketAccess) -> Result<Self, TeamError> {
        let BucketAccess { url, options, keys, folder } = access;
        let (store, prefix) = open_bucket(&url, &options).map_err(|reason| TeamError::Objects {
            remote: url.clone(),
            action: "open the bucket",
            reason,
        })?;
        let objects = BucketObjects::new(store, prefix, &url)?;
        let keys = match keys {
            KeyAccess::Database { url, password } => {
                SessionKeys::Database(Box::new(KeyDatabase::connect(&url, password.as_ref())?))
            }
            KeyAccess::Bucket { user, identities } => {
                SessionKeys::Objects(KeyObjects::new(&user, identities))
            }
        };
        Ok(Self::new(objects, keys, &folder))
    }
}

/// The bucket, and the path below which the remote is.
pub(super) fn open_bucket(
    url: &str,
    options: &BucketOptions,
) -> Result<(Arc<dyn ObjectStore>, Path), String> {
    let (scheme, rest) = url.split_once("://").ok_or("the URL is invalid")?;
    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = Path::parse(prefix.trim_end_matches('/')).map_err(|error| error.to_string())?;
    let client = client_options(options);
    let store: Result<Arc<dyn ObjectStore>, object_store::Error> = match scheme {
        "s3" => {
            let mut builder = AmazonS3Builder::new()
                .with_client_options(client)
                .with_retry(retry_config())
                .with_bucket_name(bucket);
            for (name, value) in &options.0 {
                if let Ok(name) = name.parse() {
                    builder = builder.with_config(name, value);
                }
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        "gs" => {
            let mut builder = GoogleCloudStorageBuilder::new()
                .with_client_options(client)
                .with_retry(retry_config())
                .with_bucket_name(bucket);
            for (name, value) in &options.0 {
                if let Ok(name) = name.parse() {
                    builder = builder.with_config(name, value);
                }
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        "az" => {
            let mut builder = MicrosoftAzureBuilder::new()
                .with_client_options(client)
                .with_retry(retry_config())
                .with_container_name(bucket);
            for (name, value) in &options.0 {
                if let Ok(name) = name.parse() {
                    builder = builder.with_config(name, value);
                }
            }
            builder.build().map(|store| Arc::new(store) as _)
        }
        _ => return Err("the URL is invalid".to_owned()),
    };
    Ok((store.map_err(|error| error.to_string())?, prefix))
}

fn client_options(options: &BucketOptions) -> ClientOptions {
    // Only a server on this machine may be without TLS, unless `aws_allow_http` is among the options.
    let is_local = |(name, value): &(String, String)| {
        let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
        name.contains("endpoint") && local.iter().any(|start| value.starts_with(start))
    };
    ClientOptions::new()
        .with_timeout(REQUEST_TIMEOUT)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_allow_http(options.0.iter().any(is_local))
}

/// A command waits about a minute for a bucket that does not answer.
fn retry_config() -> RetryConfig {
    let backoff = BackoffConfig { max_backoff: Duration::from_secs(5), ..BackoffConfig::default() };
    RetryConfig { backoff, max_retries: 4, retry_timeout: REQUEST_TIMEOUT }
}
