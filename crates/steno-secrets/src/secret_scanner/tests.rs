//! Tests of the rules, one by one and together.

use super::*;
use crate::made_up::MadeUpTexts;

fn find(text: &str) -> Vec<(&'static str, &str)> {
    let found = SecretScanner::built_in().find_secrets(text.as_bytes(), SecretRuleSet::All);
    found.into_iter().map(|secret| (secret.rule, &text[secret.range])).collect()
}

#[test]
fn every_rule_finds_its_example_and_leaves_the_other() {
    assert!(all_rules().count() >= 150);
    let mut wrong = Vec::new();
    for (rank, rule) in all_rules().enumerate() {
        for seed in 0..20 {
            let mut texts = MadeUpTexts::new(seed * 1000 + rank as u64);
            let (example, harmless) = (texts.fill(rule.finds), texts.fill(rule.leaves));
            if !find(&example).iter().any(|(name, _)| *name == rule.name) {
                wrong.push(format!(
                    "{}: not found in {example:?}: {:?}",
                    rule.name,
                    find(&example)
                ));
                break;
            }
            if !find(&harmless).is_empty() {
                wrong.push(format!("{}: {harmless:?} gives {:?}", rule.name, find(&harmless)));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Texts with one secret between `«` and `»`, in syntax that rules for one line and one value miss.
const ODD_SYNTAX: &[&str] = &[
    "<acmeToken>\n    «{A32}»\n</acmeToken>",
    "acme_TOKEN :::= \"«{A32}»\"",
    "$acmeToken .= \"«{h40}»\"",
    "buildConfigField \"String\", \"API_KEY\", \"\\\"«{A40}»\\\"\"",
    "token: >-\n  «{A20}\n  {A20}»\nport: 80",
    "production:\n  password: <%= \"«{p14}»\" %>",
    "set -gx ACME_API_KEY «{A32}»",
    "acme_key = \"«{h32}»\"",
    "Acme-Key «{u}»",
    "here's the acme key: «{A32}»",
    "curl -u «{A32}»: https://api.acme.org/v1",
    "vault operator unseal «{b44}»",
    "az storage blob list --account-key +«{b43}»",
    "aws ssm put-parameter --name /acme/api_key --value «{A32}» --type SecureString",
    "ParameterKey=ApiKey,ParameterValue=«{A32}»",
    "<meta name=\"csrf-token\" content=\"«{A32}»\">",
    "form-data; name=\"api_key\"\r\n\r\n«{A32}»\r\n--x",
    "\u{1b}[32m«ghp_{A36}»\u{1b}[0m ok",
    "{\"output\":\"\\u001b[1;31mtoken\\u001b[0m=«{A32}» x\"}",
    "api_key2 = '«{A32}»'",
    "acme token - '«{A32}»'",
    "token = \"«{A32}»",
    "std::string apiKey{\"«{A32}»\"};",
    "here: «acme_live_{A24}» there",
    "key-like {h24}:«{h64}» of a blog",
    "here: $2y$12$«{A22}\n{A31}» x",
    "https://acme.tines.com/webhook/{h32}/«{h32}»",
    "A1 LOGIN bob@acme.org «Winter-{A8}»",
];

/// Similar texts without a secret.
const ODD_LOOK_ALIKES: &[&str] = &[
    "<acmeToken>\n    <value/>\n</acmeToken>",
    "count += \"{d6}\";",
    "token: >-\n  see the documentation of tokens\n",
    "cache_key = \"{h32}\"",
    "gpg: using RSA key {X40}",
    "content-key {u}",
    "here's the cache key: {h40}",
    "curl -u service-account: https://api.acme.org/v1",
    "aws ssm get-parameter --name /acme/region --value eu-west-1",
    "<meta name=\"description\" content=\"{h32}\">",
    "\u{1b}[32mPASS\u{1b}[0m src/token2.test.ts",
    "acme token - 'expired'",
    "self._encryption_key = key[16:]",
    "--- PASS: TestPasswordReset (0.02s)",
    "toolu_01{A22} msg_01{A22} call_{A24}",
    "icon-{h32}.png ico-{h32}.png",
    "sha256-{b43}= {u}:{d13}",
    "{h40}\n{h40}\n{h40}",
    "docs/xoxb-example/readme-of-the-tokens.md",
];

#[test]
fn odd_syntax_hides_no_secret() {
    let mut wrong = Vec::new();
    for seed in 0..20 {
        let mut texts = MadeUpTexts::new(seed);
        for template in ODD_SYNTAX {
            let filled = texts.fill(template);
            let (start, end) = (filled.find('«').unwrap(), filled.find('»').unwrap());
            let secret = start..end - '«'.len_utf8();
            let text = filled.replace(['«', '»'], "");
            let found = SecretScanner::built_in().find_secrets(text.as_bytes(), SecretRuleSet::All);
            let covers = |found: &SecretMatch| {
                found.range.start <= secret.start && secret.end <= found.range.end
            };
            if !found.iter().any(covers) {
                wrong.push(format!("{text:?}: {:?}", find(&text)));
            }
        }
        for template in ODD_LOOK_ALIKES {
            let text = texts.fill(template);
            if !find(&text).is_empty() {
                wrong.push(format!("{text:?} gives {:?}", find(&text)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

/// Only the sealed value itself is public, not what else is near it.
#[test]
fn a_password_beside_sealed_data_is_found() {
    let sealed = format!(
        "kind: SealedSecret\nspec:\n  encryptedData:\n    password: Ag{}",
        "q7Rz0vXw93".repeat(20)
    );
    assert_eq!(find(&sealed), []);
    let key = "q7Rz0vXw93LkTn5Yb2Hd8Fg1";
    let text = format!("encryptedData: {{}}\n---\nDB_PASSWORD: {key}\n");
    assert!(find(&text).iter().any(|(_, value)| *value == key));
}

#[test]
fn a_secret_is_found_wherever_it_is_again() {
    let key = "q7Rz0vXw93LkTn5Yb2Hd8Fg1";
    let text = format!("API_KEY={key}\nthen it prints {key}, and {key} again");
    assert_eq!(find(&text).iter().filter(|(_, value)| *value == key).count(), 3);
    let text = "password=kestrel\nthe kestrel is a bird";
    assert_eq!(find(text).len(), 1, "words are not looked for");
}
