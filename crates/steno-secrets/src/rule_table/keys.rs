//! Private keys, password hashes and web tokens.

use crate::secret_rule::{SecretRule, pattern_rules, token_rules};

pub(crate) const KEY_TOKENS: &[SecretRule] = token_rules! {
    "private key" ["LS0tLS1CRUdJTiBQUklWQVRF", "LS0tLS1CRUdJTiBSU0EgUFJJVkFURS", "LS0tLS1CRUdJTiBFQyBQUklWQVRF", "LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg", "LS0tLS1CRUdJTiBEU0EgUFJJVkFURS", "LS0tLS1CRUdJTiBFTkNSWVBURUQg", "LS0tLS1CRUdJTiBQR1AgUFJJVkFURS"] Base64 60..=16000 finds "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQ{b200}" leaves "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t{b200}";
    "age key" ["AGE-SECRET-KEY-1"] UpperAlnum 50..=60 finds "AGE-SECRET-KEY-1{U58}" leaves "AGE-SECRET-KEY-1";
    "PASETO token" ["v1.local.", "v2.local.", "v3.local.", "v4.local.", "v1.public.", "v2.public.", "v3.public.", "v4.public."] Dotted 40..=2000 finds "v4.local.{w120}" leaves "v4.local.name";
    "age key" ["AGE-PLUGIN-"] Kebab 30..=400 finds "AGE-PLUGIN-YUBIKEY-1{U60}" leaves "AGE-PLUGIN-NAME";
    "Nostr key" ["nsec1"] LowerAlnum 58..=58 finds "nsec1{l58}" leaves "nsec1 is a prefix";
    "Bitcoin key" ["xprv", "yprv", "zprv", "tprv"] Alnum 100..=110 finds "xprv{A107}" leaves "xprv short";
    "NTLM hash" ["aad3b435b51404eeaad3b435b51404ee:"] LowerHex 32..=32 finds "aad3b435b51404eeaad3b435b51404ee:{h32}" leaves "aad3b435b51404eeaad3b435b51404ee:x";
};

pub(crate) const KEY_PATTERNS: &[SecretRule] = pattern_rules! {
    "private key" ["PRIVATE KEY"] within 60, 20000 certain r#"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?s:.)+?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|(?:(?:\\{1,4}[nr]|\\?[\r\n]){1,3}[ \t>|*#/+"',]{0,40}(?:[A-Za-z0-9+/=]{4,}|[A-Za-z-]{4,20}: [^\n\\"]{1,80}))+)"# finds "-----BEGIN RSA PRIVATE KEY-----\n{b64}\n-----END RSA PRIVATE KEY-----" leaves "-----BEGIN PUBLIC KEY-----\n{b64}\n-----END PUBLIC KEY-----";
    "private key" ["PuTTY-User-Key-File"] within 1, 20000 certain r"PuTTY-User-Key-File(?s:.)+?Private-Lines: [0-9]{1,4}\s+((?:[A-Za-z0-9+/=]{4,80}\s+)+)" finds "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\n{b64}\n" leaves "PuTTY-User-Key-File-3";
    "private key" ["MII", "MC4CAQ", "MHcCAQ", "b3BlbnNzaC1rZXktdjE"] within 1, 6000 certain r"(?:MII[CEJ][A-Za-z0-9+/]{2,4}IBA[A-Za-z0-9+/]{100,}|MC4CAQAwBQYDK2Vw[A-Za-z0-9+/]{40,60}|MHcCAQEEI[A-Za-z0-9+/]{60,}|b3BlbnNzaC1rZXktdjE[A-Za-z0-9+/]{60,})={0,2}" finds "MC4CAQAwBQYDK2Vw{b48}" leaves "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A{b200}";
    "private key" ["BEGIN OpenVPN Static key"] within 6, 2000 certain r"BEGIN OpenVPN Static key V1-----((?:[\s0-9a-f]|\\[nr])+)" finds "-----BEGIN OpenVPN Static key V1-----\n{h32}\n{h32}\n{h32}\n" leaves "BEGIN OpenVPN Static key V1";
    "private key" ["-----END "] within 4000, 40 certain r"((?:[A-Za-z0-9+/=]{16,}(?:[\s>|+#*]|\\[nr])+)+)-----END [A-Z0-9 ]{0,30}PRIVATE KEY" finds "{b64}\n{b64}\n-----END RSA PRIVATE KEY-----" leaves "{b64}\n-----END CERTIFICATE-----";
    "Vault unseal key" ["unseal key"] within 1, 100 certain r"(?i)unseal key(?: [0-9]{1,2}| \([a-z ]{1,20}\))?\s{0,2}[:=]\s{0,3}([A-Za-z0-9+/]{40,66}={0,2})" finds "Unseal Key 1: {b43}=" leaves "Unseal Key 1: hidden";
    "minisign key" ["secret key"] within 60, 400 certain r"untrusted comment: [^\n\\]{0,60}secret key[^\n\\]{0,60}(?:\n|\\n)([A-Za-z0-9+/=]{60,})" finds "untrusted comment: minisign encrypted secret key\nRWRTY0Iy{b200}" leaves "untrusted comment: minisign public key";
    "JSON web key" ["\"d\""] within 300, 1200, needs ["\"kty"] guessed r#""kty\\{0,3}"(?s:.)+?"d\\{0,3}"\s{0,3}:\s{0,3}\\{0,3}"([A-Za-z0-9_-]{40,})\\{0,3}"|"d\\{0,3}"\s{0,3}:\s{0,3}\\{0,3}"([A-Za-z0-9_-]{40,})\\{0,3}"[^{}]+"kty""# finds "{\"kty\":\"EC\",\"crv\":\"P-256\",\"d\":\"{w43}\"}" leaves "{\"a\":1,\"d\":\"{w43}\"}";
    "JSON web token" ["eyJ"] within 1, 8000 certain r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]{10,})?" finds "eyJhbGciOiJIUzI1NiJ9.eyJ{w30}.{w43}" leaves "eyJhbGciOiJIUzI1NiJ9 is a header";
    "JSON web token" ["ewog"] within 1, 8000 certain r"ewog[A-Za-z0-9_-]{10,}={0,2}\.ewog[A-Za-z0-9_-]{10,}={0,2}\.[A-Za-z0-9_-]{20,}" finds "ewogICJhbGciOiAiSFMyNTYiCn0.ewog{w40}.{w43}" leaves "ewogICJhbGciOiAiSFMyNTYiCn0";
    "JSON web token" ["eyJhbGciOi", "eyJ0eXAiOiJ", "eyJraWQiOi"] within 1, 9000 certain r"eyJ[A-Za-z0-9_-]{17,}(?:\.[A-Za-z0-9_-]*){2,4}" finds "eyJhbGciOiJkaXIi{w30}..{w16}.{w200}.{w22}" leaves "eyJhbGciOiJIUzI1NiJ9";
    "password hash" ["$1$", "$2a$", "$2b$", "$2y$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$apr1$", "$argon2", "$scrypt$", "$pbkdf2"] within 2, 240 certain r"\$(?:2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}|(?:1|apr1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|[567]\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43,86}|g?y\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{20,86}|argon2id?\$v=[0-9]+\$[a-z0-9=,]{5,40}\$[A-Za-z0-9+/]{8,86}\$[A-Za-z0-9+/]{20,86}|scrypt\$[A-Za-z0-9=,+/$]{40,}|pbkdf2[a-z0-9-]{0,12}\$[A-Za-z0-9=,+./$]{40,})" finds "root:$6${A16}${A86}:19000:0:99999:7:::" leaves "costs $1$ or $5$";
    "password hash" ["$krb5", "$8$", "$9$", "$DCC2$", "$NETNTLM"] within 2, 400 certain r"\$(?:krb5[a-z]{2,6}\$[^\s$]{1,60}\$[^\s]{32,}|[89]\$[./A-Za-z0-9]{8,20}\$[./A-Za-z0-9]{43}|(?:DCC2|NETNTLM(?:v2)?)\$[^\s]{32,})" finds "$krb5asrep$23${h32}${h120}" leaves "costs $8$ or $9$";
    "password hash" ["{SSHA}", "{SHA}", "{SSHA512}", "{SSHA256}", "{SMD5}", "{CRYPT}"] within 1, 180 certain r"\{(?:SSHA|SHA|SSHA512|SSHA256|SMD5|CRYPT)\}[A-Za-z0-9+/$.]{20,}={0,2}" finds "userPassword: {SSHA}{b32}" leaves "{SHA} hashes";
    "password hash" ["pbkdf2_sha256$", "pbkdf2_sha1$", "bcrypt_sha256$"] within 1, 140 certain r"(?:pbkdf2_sha(?:1|256)|bcrypt_sha256)\$[0-9$a-z]{1,12}\$[A-Za-z0-9./$]{8,60}\$?[A-Za-z0-9+/=]{24,}" finds "pbkdf2_sha256$600000${A22}${b43}=" leaves "pbkdf2_sha256$x";
    "password hash" [":::"] within 120, 4 certain r"\b[A-Za-z0-9._$-]{1,32}:[0-9]{1,6}:([0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::" finds "bob:1001:{h32}:{h32}:::" leaves "a:::b";
    "password hash" ["password 7 ", "secret 5 ", "secret 8 ", "secret 9 "] within 1, 80 certain r"(?:password 7|secret [589]) ([0-9A-F]{8,60}|\$[589]\$[./A-Za-z0-9$]{20,})" finds "username admin password 7 {X16}" leaves "password 7 days old";
    "JSON web key" ["\"oct"] within 300, 400 guessed r#""oct\\{0,3}"[^{}]{0,200}?"k\\{0,3}"\s{0,3}:\s{0,3}\\{0,3}"([A-Za-z0-9_-]{20,})|"k\\{0,3}"\s{0,3}:\s{0,3}\\{0,3}"([A-Za-z0-9_-]{20,})\\{0,3}"[^{}]{0,200}"oct"# finds "{\"kty\":\"oct\",\"k\":\"{w43}\"}" leaves "{\"kty\":\"oct\",\"k\":\"\"}";
    "recovery phrase" ["mnemonic", "seed phrase", "recovery phrase", "seed words", "secret phrase", "backup phrase", "seedphrase"] within 2, 300 guessed r#"(?i)(?:mnemonic|seed ?phrase|recovery phrase|seed words|secret phrase|backup phrase)[a-z_ ]{0,12}["'\\]{0,3}\s{0,3}(?:is|[:=])\s{0,3}["'\\]{0,3}((?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b"# finds "mnemonic: {a4} {a5} {a6} {a4} {a5} {a6} {a4} {a5} {a6} {a4} {a5} {a6}" leaves "mnemonic: a word that helps to remember";
    "one-time password secret" ["otpauth://"] within 1, 300 certain r"otpauth://[^\s]+?[?&]secret=([A-Za-z2-7]{12,80})" finds "otpauth://totp/a:b?secret={B32}&issuer=a" leaves "otpauth://totp/a:b";
};
