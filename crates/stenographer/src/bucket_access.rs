//! What opens a bucket: credentials from the environment and from the files of AWS, keys from a database or for the
//! identities in a file.

use std::fs;
use std::path::{Path, PathBuf};

use steno_cipher::AgeIdentity;
use steno_model::{Clock, durable};
use steno_team::{
    BucketAccess, BucketOptions, KeyAccess, KeyLocation, PostgresPassword, RemoteSettings,
    RemoteUrl,
};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::user_name::find_user_name;

/// The variables of each provider that have an effect.
const VARIABLES: [&str; 25] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL_STS",
    "AWS_ALLOW_HTTP",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_SERVER_SIDE_ENCRYPTION",
    "AWS_SSE_KMS_KEY_ID",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CLIENT_ID",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_STORAGE_TENANT_ID",
];

/// Settings in the files of AWS.
const FILE_SETTINGS: [&str; 5] =
    ["aws_access_key_id", "aws_secret_access_key", "aws_session_token", "region", "endpoint_url"];

/// Writes the identity that a team shares, if `keys` names a file that does not exist. Returns whether it was written.
pub(crate) fn create_identity_file(
    settings: &RemoteSettings,
    clock: &Clock,
) -> Result<bool, CommandError> {
    let Some(KeyLocation::IdentityFile(path)) = &settings.keys else { return Ok(false) };
    if !matches!(settings.url, RemoteUrl::Bucket(_)) || path.exists() {
        return Ok(false);
    }
    let identity = AgeIdentity::generate();
    let date = clock.now();
    let text = format!(
        "# created: {date}\n# public key: {}\n{}\n",
        identity.recipient(),
        identity.to_secret_text()
    );
    // Only this user may read the file.
    durable::write_atomic(path, text.as_bytes())?;
    Ok(true)
}

/// What is needed to use a bucket. `password` is for the database with its keys.
pub(crate) fn prepare_bucket_access(
    env: &ProcessEnvironment,
    settings: &RemoteSettings,
    password: Option<PostgresPassword>,
) -> Result<BucketAccess, CommandError> {
    let keys = match &settings.keys {
        Some(KeyLocation::Database(url)) => KeyAccess::Database { url: url.clone(), password },
        Some(KeyLocation::IdentityFile(path)) => {
            KeyAccess::Bucket { user: find_user_name()?, identities: read_identities(path)? }
        }
        None => {
            let RemoteSettings { name, url, .. } = settings;
            let error = CommandError::user(format!("{name} has no place for keys: {url}"));
            return Err(error.hint(format!(
                "in [remote.{name}] of config.toml, set keys = \"postgres://ada@db.example.com/steno\" or \
                 keys = \"file:///home/ada/team.key\"; see docs/team.md"
            )));
        }
    };
    Ok(BucketAccess {
        url: settings.url.to_string(),
        options: BucketOptions(bucket_options(env)),
        keys,
        folder: env.store.join("remotes").join(&settings.name),
    })
}

fn read_identities(path: &Path) -> Result<Vec<AgeIdentity>, CommandError> {
    let failed = |error: &dyn std::fmt::Display| {
        let error = CommandError::user(format!("{}: {error}", path.display()));
        error.hint("ask a member for the file, or create it with `steno remote init`")
    };
    let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
    AgeIdentity::parse_file(&text).map_err(|error| failed(&error))
}

/// Options from the files of AWS, and then from the environment, which takes precedence.
fn bucket_options(env: &ProcessEnvironment) -> Vec<(String, String)> {
    let variable = |name: &str| {
        let value = ProcessEnvironment::variable(name)?;
        Some(value.to_string_lossy().into_owned())
    };
    let file = |name: &str, default: &str| {
        let named = ProcessEnvironment::variable(name).map(PathBuf::from);
        named.unwrap_or_else(|| env.home.join(".aws").join(default))
    };
    let profile = variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    let mut options = Vec::new();
    for (path, section) in [
        (file("AWS_CONFIG_FILE", "config"), format!("profile {profile}")),
        (file("AWS_CONFIG_FILE", "config"), profile.clone()),
        (file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), profile.clone()),
    ] {
        let text = fs::read_to_string(path).unwrap_or_default();
        options.extend(read_profile(&text, &section));
    }
    if variable("AWS_ACCESS_KEY_ID").is_some() {
        // A session token of the file belongs to the key of the file.
        options.retain(|(name, _)| !name.starts_with("aws_"));
    }
    let variables = VARIABLES.iter();
    options.extend(variables.filter_map(|name| Some((name.to_ascii_lowercase(), variable(name)?))));
    options
}

/// The settings in a section of a file of AWS: `[name]`, then lines `setting = value`.
fn read_profile(text: &str, section: &str) -> Vec<(String, String)> {
    let mut is_wanted = false;
    let mut settings = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix('[') {
            is_wanted = name.strip_suffix(']').is_some_and(|name| name.trim() == section);
        } else if let Some((name, value)) = line.split_once('=').filter(|_| is_wanted) {
            let name = name.trim();
            if FILE_SETTINGS.contains(&name) {
                settings.push((name.to_owned(), value.trim().to_owned()));
            }
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_from_its_section_only() {
        let text = "[default]\naws_access_key_id = one\n# x = y\n[work]\naws_access_key_id=two\n\
             aws_secret_access_key = a=b\nregion = eu-1\nsso_session = none\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read_profile(text, "default"), [pair("aws_access_key_id", "one")]);
        assert_eq!(
            read_profile(text, "work"),
            [
                pair("aws_access_key_id", "two"),
                pair("aws_secret_access_key", "a=b"),
                pair("region", "eu-1")
            ]
        );
        assert_eq!(read_profile(text, "other"), []);
    }
}
