//! Identities in the system's keyring, by its own program: `secret-tool` on Linux, `security` on macOS.

use std::io::Write;
use std::process::{Command, Stdio};

use steno_cipher::AgeIdentity;

use crate::error::CommandError;

/// The identity of a recipient, if the keyring has it.
pub(crate) fn find_identity(recipient: &str) -> Vec<AgeIdentity> {
    let mut command = match cfg!(target_os = "macos") {
        true => {
            let mut command = Command::new("security");
            command.args(["find-generic-password", "-a", recipient, "-s", "steno", "-w"]);
            command
        }
        false => {
            let mut command = Command::new("secret-tool");
            command.args(["lookup", "application", "steno", "recipient", recipient]);
            command
        }
    };
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok().and_then(|text| AgeIdentity::parse_file(&text).ok()).unwrap_or_default()
}

/// Stores an identity. The secret is passed by a pipe, never as an argument.
pub(crate) fn save_identity(identity: &AgeIdentity) -> Result<(), CommandError> {
    let (recipient, secret) = (identity.recipient().to_string(), identity.to_secret_text());
    let (mut command, input) = match cfg!(target_os = "macos") {
        true => {
            let mut command = Command::new("security");
            command.arg("-i");
            (command, format!("add-generic-password -U -a {recipient} -s steno -w {secret}\n"))
        }
        false => {
            let mut command = Command::new("secret-tool");
            let arguments = ["store", "--label=Steno store", "application", "steno", "recipient"];
            command.args(arguments).arg(&recipient);
            (command, secret)
        }
    };
    let failed = |reason: String| {
        let error = CommandError::user(format!("could not use the system's keyring: {reason}"));
        error.hint("Linux needs secret-tool (libsecret-tools); or use --new-identity FILE")
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    if let Some(mut pipe) = child.stdin.take() {
        pipe.write_all(input.as_bytes())?;
    }
    let status = child.wait()?;
    // Only a key that can be read again may encrypt a store.
    match status.success() && find_identity(&recipient).contains(identity) {
        true => Ok(()),
        false => Err(failed(status.to_string())),
    }
}
