//! Classifies names of variables, fields and options by the kind of secret that they hold.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::name_words::{
    BEFORE_CHOSEN_KEY, BEFORE_KEY, HARMLESS_ENDINGS, HARMLESS_WORDS, KNOWN_RANDOM_NAMES,
    RECORD_WORDS, VENDOR_WORDS,
};
use crate::names::split_words;

/// What a name says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldNameClass {
    /// A password, which may be any word.
    Password,
    /// A secret that people or programs choose.
    Chosen,
    /// A key or a token, which programs choose at random.
    Random,
    /// A key of an unknown kind. Many are no secret.
    UnknownKey,
    /// A header with cookies.
    Cookies,
}

/// Lower-case words that occur in every name that is classified. A text without them has no such name.
pub(crate) const NAME_HINTS: [&str; 38] = [
    "app_certificate",
    "access_grant",
    "reporter_id",
    "sonar.login",
    "sonarlogin",
    "totp",
    "otp_",
    "recovery_code",
    "backup_code",
    "device_code",
    "code_verifier",
    "honeycomb-team",
    "appid",
    "pass",
    "pwd",
    "pw",
    "secret",
    "token",
    "key",
    "auth",
    "cred",
    "cookie",
    "bearer",
    "jwt",
    "sess",
    "sid",
    "psk",
    "salt",
    "senha",
    "contrase",
    "kennwort",
    "passwort",
    "pepper",
    "_pat",
    "wachtwoord",
    "adgangskode",
    "salasana",
    "heslo",
];

const PASSWORD_WORDS: [&str; 18] = [
    "passwords",
    "psk",
    "wachtwoord",
    "adgangskode",
    "salasana",
    "heslo",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "passcode",
    "passwort",
    "kennwort",
    "senha",
    "contrasena",
    "motdepasse",
    "pswd",
    "passwrd",
];

/// Words that mean a password only at the end of a name: `pass_rate` is none.
const SHORT_PASSWORD_WORDS: [&str; 4] = ["pass", "pw", "psw", "passw"];

const PASSWORD_ENDINGS: [&str; 15] = [
    "storepass",
    "keypass",
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "dbpass",
    "userpass",
    "rootpass",
    "adminpass",
    "mypass",
    "smtppass",
    "dbpwd",
    "userpwd",
    "sshpass",
];

const CHOSEN_WORDS: [&str; 13] = [
    "secrets",
    "totp",
    "secret",
    "credential",
    "credentials",
    "creds",
    "salt",
    "pepper",
    "secretkey",
    "privatekey",
    "masterkey",
    "encryptionkey",
    "presharedkey",
];

const CHOSEN_ENDINGS: [&str; 4] = ["secret", "secretkey", "privatekey", "encryptionkey"];

const RANDOM_WORDS: [&str; 12] = [
    "token",
    "apikey",
    "accesskey",
    "authkey",
    "auth",
    "bearer",
    "jwt",
    "authorization",
    "authtoken",
    "pat",
    "xsrf",
    "csrf",
];

const RANDOM_ENDINGS: [&str; 5] = ["token", "apikey", "accesskey", "authkey", "jwt"];

/// How many names a thread remembers.
const MAX_REMEMBERED_NAMES: usize = 4096;

thread_local! {
    /// Classes of names: a session has few names, many times.
    static REMEMBERED_CLASSES: RefCell<HashMap<String, Option<FieldNameClass>>> = RefCell::default();
}

/// Classifies a name; `None` if its value need not be secret.
pub(crate) fn classify_field_name(name: &str) -> Option<FieldNameClass> {
    REMEMBERED_CLASSES.with_borrow_mut(|classes| {
        if let Some(class) = classes.get(name) {
            return *class;
        }
        let class = classify_words(name);
        if classes.len() >= MAX_REMEMBERED_NAMES {
            classes.clear();
        }
        classes.insert(name.to_owned(), class);
        class
    })
}

fn classify_words(name: &str) -> Option<FieldNameClass> {
    let lower = name.to_ascii_lowercase();
    // Exact case: `sessionId` is the id of a session, which is not secret.
    let is_session = name == "sessionid" || name.starts_with('_') && name.ends_with("_session");
    if KNOWN_RANDOM_NAMES.contains(&lower.as_str()) || is_session {
        return Some(FieldNameClass::Random);
    }
    let mut words = split_words(name);
    // `token2` is another token.
    for word in &mut words {
        let number = word.bytes().rev().take_while(u8::is_ascii_digit).count();
        if number <= 2 && number < word.len() && !word.starts_with("auth0") {
            word.truncate(word.len() - number);
        }
    }
    words.retain(|word| word.len() != 1 || !word.bytes().all(|byte| byte.is_ascii_digit()));
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let ends =
        |list: &[&str]| words.iter().any(|word| list.iter().any(|ending| word.ends_with(ending)));
    // The last word is what the value is: `password_id` is an id, `secret_id` of a vault is a secret.
    let is_id = words.last().is_some_and(|word| matches!(word.as_str(), "id" | "ids"))
        && !["secret_id", "secretid"].iter().any(|ending| {
            lower.trim_end_matches(|last: char| last.is_ascii_digit()).ends_with(ending)
        });
    let is_last = |list: &[&str]| words.last().is_some_and(|word| list.contains(&word.as_str()));
    if is_id || has(&HARMLESS_WORDS) || is_last(&HARMLESS_ENDINGS) {
        return None;
    }
    if is_last(&["cookie", "cookies"]) {
        return Some(FieldNameClass::Cookies);
    }
    if has(&PASSWORD_WORDS) || is_last(&SHORT_PASSWORD_WORDS) || ends(&PASSWORD_ENDINGS) {
        return Some(FieldNameClass::Password);
    }
    let has_key = |before: &[&str]| {
        words.windows(2).any(|pair| {
            matches!(pair[1].as_str(), "key" | "keys") && before.contains(&pair[0].as_str())
        })
    };
    if has(&CHOSEN_WORDS) || ends(&CHOSEN_ENDINGS) || has_key(&BEFORE_CHOSEN_KEY) {
        return Some(FieldNameClass::Chosen);
    }
    let follows_service =
        words.windows(2).any(|pair| pair[1] == "key" && VENDOR_WORDS.contains(&pair[0].as_str()));
    let is_random = has(&RANDOM_WORDS)
        || ends(&RANDOM_ENDINGS)
        || has_key(&BEFORE_KEY)
        || follows_service
        || is_key_variable(name);
    if is_random {
        return Some(FieldNameClass::Random);
    }
    let is_unknown_key = words.len() >= 2
        && is_last(&["key"])
        && !words.iter().any(|word| RECORD_WORDS.contains(&word.as_str()));
    is_unknown_key.then_some(FieldNameClass::UnknownKey)
}

/// Whether a name is a variable of the environment for a key, such as `MAPS_KEY`.
fn is_key_variable(name: &str) -> bool {
    let name = name.strip_prefix("process.env.").or(name.strip_prefix("env.")).unwrap_or(name);
    let is_other = [
        "GPG_KEY",
        "PGP_KEY",
        "HOT_KEY",
        "SHORTCUT_KEY",
        "STORAGE_KEY",
        "LOCALE_KEY",
        "OBJECT_KEY",
    ];
    name.ends_with("_KEY")
        && !is_other.iter().any(|other| name.ends_with(other))
        && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// Whether the `key` of this word may be the one of a lock: no word of tables, files and machines is before it.
pub(crate) fn may_own_key(word: &str) -> bool {
    let is_preposition = matches!(word, "from" | "with" | "for" | "into" | "using" | "under");
    !is_preposition && !RECORD_WORDS.contains(&word) && !HARMLESS_WORDS.contains(&word)
}

/// Whether a word makes a following `key` of a sentence the key of a lock, as in `API key` or `Stripe key`.
pub(crate) fn is_before_key(word: &str) -> bool {
    const IN_SENTENCES: [&str; 12] = [
        "wifi",
        "wi-fi",
        "wpa",
        "wpa2",
        "wlan",
        "network",
        "product",
        "activation",
        "recovery",
        "security",
        "bearer",
        "bot",
    ];
    // In a sentence, these are keys of tables and machines.
    let is_other = matches!(word, "host" | "session" | "client" | "server" | "root");
    !is_other
        && (BEFORE_KEY.contains(&word)
            || VENDOR_WORDS.contains(&word)
            || IN_SENTENCES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_classified_by_their_words() {
        for (name, class) in [
            ("DB_PASSWORD", FieldNameClass::Password),
            ("dbpassword", FieldNameClass::Password),
            ("spring.datasource.password", FieldNameClass::Password),
            ("userPwd", FieldNameClass::Password),
            ("JWT_SECRET", FieldNameClass::Chosen),
            ("clientSecret", FieldNameClass::Chosen),
            ("ENCRYPTION_KEY", FieldNameClass::Chosen),
            ("X-Api-Key", FieldNameClass::Random),
            ("GITHUB_TOKEN", FieldNameClass::Random),
            ("accesstoken", FieldNameClass::Random),
            ("Set-Cookie", FieldNameClass::Cookies),
        ] {
            assert_eq!(classify_field_name(name), Some(class), "{name}");
        }
    }

    #[test]
    fn names_of_harmless_values_are_left() {
        for name in [
            "password_hint",
            "next_page_token",
            "max_tokens",
            "primaryKey",
            "publicKey",
            "compass",
            "author",
            "tokenizer",
            "secretName",
            "key_id",
            "sessionId",
            "PASSWORD_FILE",
            "keyboard",
            "bypass",
            "pass_rate",
        ] {
            assert_eq!(classify_field_name(name), None, "{name}");
        }
    }
}
