//! The table of rules that recognise secrets.

/// A rule for one kind of secret.
pub(super) struct SecretRule {
    /// The name in the redaction marker.
    pub(super) name: &'static str,
    /// Texts with such a secret contain at least one of these words, in any case. Other texts are skipped.
    pub(super) hints: &'static [&'static str],
    /// The pattern. Its first group, if any, is the secret.
    pub(super) pattern: &'static str,
    /// Minimum entropy in bits per character; 0 if the form is enough.
    pub(super) entropy: f64,
    /// A made-up secret that must match, in two parts so that no scanner reports it.
    #[cfg_attr(not(test), expect(dead_code, reason = "what a rule is for; tests hold it to that"))]
    pub(super) secret: [&'static str; 2],
    /// A similar text that must not match.
    #[cfg_attr(not(test), expect(dead_code, reason = "what a rule is for; tests hold it to that"))]
    pub(super) harmless: &'static str,
}

/// A rule that needs no entropy: the form is enough.
const fn form_rule(
    name: &'static str,
    hints: &'static [&'static str],
    pattern: &'static str,
) -> SecretRule {
    SecretRule { name, hints, pattern, entropy: 0.0, secret: ["", ""], harmless: "" }
}

impl SecretRule {
    const fn with_examples(self, secret: [&'static str; 2], harmless: &'static str) -> Self {
        Self { secret, harmless, ..self }
    }
}

/// All rules, the most specific first. Text that one rule has matched is hidden from the next.
pub(super) const SECRET_RULES: &[SecretRule] = &[
    form_rule(
        "private key",
        &["PRIVATE KEY"],
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?s:.)+?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----",
    )
    .with_examples(
        [
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEow",
            "IBAAKCAQEA\n-----END RSA PRIVATE KEY-----",
        ],
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----",
    ),
    form_rule("Anthropic key", &["sk-ant-"], r"\bsk-ant-[A-Za-z0-9_-]{20,}")
        .with_examples(["sk-ant-", "api03-abcdefghijklmnopqrstuvwx"], "sk-ant-short"),
    form_rule("OpenRouter key", &["sk-or-v1-"], r"\bsk-or-v1-[0-9a-f]{64}\b")
        .with_examples(
            ["sk-or-v1-", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"],
            "sk-or-v1-0123456789abcdef",
        ),
    form_rule(
        "OpenAI key",
        &["sk-"],
        r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9]{20}[A-Za-z0-9_-]*",
    )
    .with_examples(
        ["sk-proj-", "abcdefghijklmnopqrstuvwxyz012345"],
        "sk-learn-preprocessing-pipeline-steps",
    ),
    form_rule(
        "AWS key id",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    )
    .with_examples(["AKIA", "IOSFODNN7EXAMPLE"], "AKIAISNOTAKEY"),
    form_rule(
        "AWS secret key",
        &["secret"],
        r#"(?i)aws_?secret_?(?:access_?)?key["']?\s*[:=]\s*["']?([a-z0-9/+]{40})\b"#,
    )
    .with_examples(
        ["aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"],
        "aws_secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY']",
    ),
    form_rule(
        "GitHub token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
        r"\bgh[pousr]_[A-Za-z0-9]{36,}",
    )
    .with_examples(["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"], "ghp_token_from_settings"),
    form_rule("GitHub token", &["github_pat_"], r"\bgithub_pat_[A-Za-z0-9_]{36,}")
        .with_examples(
            ["github_pat_", "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz012345"],
            "github_pat_is_fine_grained",
        ),
    form_rule(
        "GitLab token",
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"],
        r"\bgl(?:pat|dt|rt|cbt|ptt)-[A-Za-z0-9_-]{20,}",
    )
    .with_examples(["glpat-", "abcdefghij0123456789"], "glpat-is-a-prefix"),
    form_rule("Slack token", &["xox"], r"\bxox[abeoprs]-[0-9A-Za-z]{8,}[0-9A-Za-z-]*")
        .with_examples(["xoxb-", "123456789012-abcdefghijklmnop"], "xoxb-token"),
    form_rule(
        "Slack webhook",
        &["hooks.slack.com"],
        r"https://hooks\.slack\.com/(?:services|workflows)/([A-Za-z0-9/]{20,})",
    )
    .with_examples(
        ["https://hooks.slack.com/services/", "T00000000/B00000000/abcdefghijklmnopqrstuvwx"],
        "https://hooks.slack.com/services/",
    ),
    form_rule("Google key", &["AIza"], r"\bAIza[0-9A-Za-z_-]{35}")
        .with_examples(["AIza", "SyA1234567890abcdefghijklmnopqrstuv"], "AIzawa is a name"),
    form_rule("Google token", &["ya29.", "GOCSPX-"], r"\b(?:ya29\.|GOCSPX-)[0-9A-Za-z_-]{20,}")
        .with_examples(["ya29.", "a0AfH6SMBabcdefghijklmnop"], "ya29.short"),
    form_rule(
        "Stripe key",
        &["sk_", "rk_", "whsec_"],
        r"\b(?:sk|rk|whsec)_(?:live_|test_)?[0-9A-Za-z]{24,}",
    )
    .with_examples(["sk_live_", "abcdefghijklmnopqrstuvwx"], "sk_live_mode_is_on"),
    form_rule("npm token", &["npm_"], r"\bnpm_[A-Za-z0-9]{36}\b")
        .with_examples(["npm_", "abcdefghijklmnopqrstuvwxyz0123456789"], "npm_config_registry"),
    form_rule("PyPI token", &["pypi-"], r"\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}")
        .with_examples(
            ["pypi-AgEIcHlwaS5vcmc", "CJDEyMzQ1Njc4LTEyMzQtMTIzNC0xMjM0LTEyMzQ1Njc4OTBhYgAC"],
            "pypi-simple",
        ),
    form_rule("crates.io token", &["cio"], r"\bcio[A-Za-z0-9]{32}\b")
        .with_examples(["cio", "abcdefghijklmnopqrstuvwxyz012345"], "ciopfs"),
    form_rule("Hugging Face token", &["hf_"], r"\bhf_[A-Za-z0-9]{34}\b")
        .with_examples(["hf_", "abcdefghijklmnopqrstuvwxyzABCDEFGH"], "hf_hub_download"),
    form_rule("SendGrid key", &["SG."], r"\bSG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}")
        .with_examples(
            ["SG.abcdefghijklmnopqrstuv.", "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG"],
            "SG.Utils.Method",
        ),
    form_rule("Twilio key", &["SK"], r"\bSK[0-9a-f]{32}\b")
        .with_examples(["SK", "0123456789abcdef0123456789abcdef"], "SKU0123456789"),
    form_rule(
        "DigitalOcean token",
        &["doo_v1_", "dop_v1_", "dor_v1_"],
        r"\bdo[opr]_v1_[0-9a-f]{64}\b",
    )
    .with_examples(
        ["dop_v1_", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"],
        "dop_v1_token",
    ),
    form_rule("Vault token", &["hvs.", "hvb.", "hvr."], r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}")
        .with_examples(["hvs.", "abcdefghijklmnopqrstuvwxyz"], "hvs.read"),
    form_rule("Telegram token", &[":AA"], r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{33}\b")
        .with_examples(["123456789:", "AAabcdefghijklmnopqrstuvwxyz0123456"], "12345678:AAA"),
    form_rule("Azure key", &["AccountKey="], r"\bAccountKey=([A-Za-z0-9+/]{86}==)")
        .with_examples(
            [
                "AccountKey=",
                "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz01234567==",
            ],
            "AccountKey=${KEY}",
        ),
    form_rule(
        "JSON web token",
        &["eyJ"],
        r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    )
    .with_examples(
        ["eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"],
        "eyJhbGciOiJIUzI1NiJ9 is a header",
    ),
    form_rule(
        "password",
        &["://"],
        r#"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@"']{1,64}:([^\s/:@"'$<{\[]{3,128})@"#,
    )
    .with_examples(
        ["postgres://user:", "correcthorse@localhost/db"],
        "postgres://user:$PASSWORD@localhost/db",
    ),
    form_rule(
        "authorization",
        &["authorization"],
        r#"(?i)\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+([a-z0-9._~+/=-]{16,})"#,
    )
    .with_examples(
        ["Authorization: Bearer ", "abcdefghijklmnop0123"],
        "Authorization: Bearer $TOKEN",
    ),
    SecretRule {
        name: "secret",
        hints: &["secret", "token", "passw", "api_key", "apikey", "access_key", "accesskey"],
        pattern: r#"(?i)\b[a-z0-9_.-]{0,40}(?:secret|token|passwd|password|api_?key|access_?key)["']?\s*[:=]\s*["']?([a-z0-9+/=_-]{20,200})"#,
        entropy: 3.7,
        secret: ["MY_API_KEY=\"", "q7Rz0vXw93LkTn5Yb2Hd8Fg1\""],
        harmless: "next_token = \"aaaaaaaaaaaaaaaaaaaaaaaa\"",
    },
];
