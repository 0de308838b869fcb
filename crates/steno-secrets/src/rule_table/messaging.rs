//! Tokens and webhooks of chat, mail, telephone and social services.

use crate::secret_rule::{SecretRule, pattern_rules, token_rules};

pub(crate) const MESSAGING_TOKENS: &[SecretRule] = token_rules! {
    "Slack token" ["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xoxc-", "xoxd-", "xoxe.xoxp-", "xoxe.xoxb-"] Loose 16..=300 finds "xoxb-{d12}-{d12}-{A24}" leaves "xoxb-token";
    "Slack token" ["xapp-"] Kebab 30..=160 finds "xapp-1-{U11}-{d13}-{h64}" leaves "xapp-name";
    "Mailgun key" ["key-"] LowerHex 32..=32 finds "key-{h32}" leaves "key-{h12}";
    "Mandrill key" ["md-"] Kebab 22..=22 finds "md-{A22}" leaves "md-col-6";
    "Brevo key" ["xkeysib-", "xsmtpsib-"] Kebab 60..=100 finds "xkeysib-{h64}-{A16}" leaves "xkeysib-x";
    "SendGrid key" ["SG."] Dotted 50..=90 finds "SG.{w22}.{w43}" leaves "SG.Utils.Method";
    "Intercom token" ["dG9rOj"] Base64 40..=80 finds "dG9rOj{b54}=" leaves "dG9rOj";
    "Matrix token" ["syt_"] Kebab 30..=140 finds "syt_{a8}_{M20}_{A6}" leaves "syt_name";
    "Facebook token" ["EAACEdEose0cBA", "EAAG", "EAAB", "EAAC", "EAAD", "EAA"] Alnum 80..=400 finds "EAAG{A150}" leaves "EAAGER";
    "Instagram token" ["IGQV", "IGAA"] Kebab 80..=300 finds "IGQV{w120}" leaves "IGAA short";
    "Twitter token" ["AAAAAAAAAAAAAAAAAAAA"] Loose 50..=200 finds "AAAAAAAAAAAAAAAAAAAAA{A80}%3D{A20}" leaves "AAAAAAAAAAAAAAAAAAAAAAAA";
    "LinkedIn secret" ["WPL_AP1."] Loose 16..=60 finds "WPL_AP1.{A16}" leaves "WPL_AP1.x";
    "VK token" ["vk1.a."] Kebab 60..=300 finds "vk1.a.{w180}" leaves "vk1.a.x";
    "Dropbox token" ["sl.B", "sl.C", "sl.u.", "sl.A"] Kebab 60..=1500 finds "sl.B{w135}" leaves "sl.Browse";
    "Dropbox token" ["sl."] Kebab 120..=1500 finds "sl.{w136}" leaves "sl.browse-the-files";
    "Discord token" ["mfa."] Kebab 60..=100 finds "mfa.{w84}" leaves "mfa.enabled";
    "MailerSend token" ["mlsn."] LowerHex 50..=70 finds "mlsn.{h64}" leaves "mlsn.com";
    "Courier key" ["pk_prod_", "dk_prod_"] Alnum 26..=32 finds "pk_prod_{U28}" leaves "pk_prod_name";
};

pub(crate) const MESSAGING_PATTERNS: &[SecretRule] = pattern_rules! {
    "Slack webhook" ["hooks.slack.com"] within 10, 160 certain r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9/]{20,})" finds "https://hooks.slack.com/services/T{U8}/B{U8}/{A24}" leaves "https://hooks.slack.com/services/";
    "Discord webhook" ["discord.com/api/", "discordapp.com/api/"] within 10, 140 certain r"discord(?:app)?\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{15,22}/([A-Za-z0-9_-]{40,})" finds "https://discord.com/api/webhooks/{d18}/{w68}" leaves "https://discord.com/api/webhooks/{d18}";
    "Teams webhook" ["webhook.office.com", "outlook.office.com/webhook", "outlook.office365.com/webhook"] within 20, 240 certain r"(?:webhook|outlook)\.office(?:365)?\.com/webhookb?2?/([A-Za-z0-9@/-]{60,})" finds "https://acme.webhook.office.com/webhookb2/{u}@{u}/IncomingWebhook/{h32}/{u}" leaves "https://acme.webhook.office.com/";
    "Google Chat webhook" ["chat.googleapis.com"] within 10, 260 certain r"chat\.googleapis\.com/v1/spaces/[A-Za-z0-9_-]{5,40}/messages\?([A-Za-z0-9_=&%-]{40,})" finds "https://chat.googleapis.com/v1/spaces/{A11}/messages?key={w39}&token={w43}" leaves "https://chat.googleapis.com/v1/spaces";
    "webhook" ["hooks.zapier.com", "maker.ifttt.com", ".make.com/"] within 10, 120 certain r"(?:hooks\.zapier\.com/hooks/catch|maker\.ifttt\.com/trigger/[A-Za-z0-9_-]{1,40}/with/key|hook\.[a-z]{2}[0-9]\.make\.com)/([A-Za-z0-9/_-]{12,80})" finds "https://hooks.zapier.com/hooks/catch/{d7}/{l7}" leaves "https://hooks.zapier.com/";
    "webhook" ["open-apis/bot/v2/hook/", "hc-ping.com/", "/IncomingWebhook/", "events.pagerduty.com/integration/"] within 1, 90 certain r"(?:open-apis/bot/v2/hook/|hc-ping\.com/|/IncomingWebhook/|events\.pagerduty\.com/integration/)([A-Za-z0-9-]{20,60})" finds "https://open.feishu.cn/open-apis/bot/v2/hook/{u}" leaves "https://hc-ping.com/docs";
    "webhook" ["/webhook/", "/webhooks/", "/webhookb2/", "/incoming/"] within 80, 200 certain r"https?://[A-Za-z0-9.-]{3,80}(?::[0-9]{2,5})?(?:/[A-Za-z0-9_.-]{1,24}){0,4}?/(?:webhooks?|webhookb2|incoming)/([A-Za-z0-9/_-]{0,60}[A-Za-z0-9]{28,80}(?:/[A-Za-z0-9]{16,80})?)" finds "https://acme.tines.com/webhook/{h32}/{h32}" leaves "https://acme.org/webhooks/how-to-receive-events";
    "webhook" ["/hooks/"] within 60, 90 certain r"https?://[A-Za-z0-9.-]{3,60}(?::[0-9]{2,5})?(?:/[a-z]{2,12})?/hooks/([a-z0-9]{26}|[A-Za-z0-9]{17,24}/[A-Za-z0-9]{20,60})\b" finds "https://chat.acme.org/hooks/{l26}" leaves "https://acme.org/hooks/usehooks-documentation";
    "Firebase key" [":APA91b"] within 14, 180 certain r"\bAAAA[A-Za-z0-9_-]{7}:APA91b[A-Za-z0-9_-]{100,160}" finds "AAAA{w7}:APA91b{w134}" leaves "AAAA:APA91b";
    "Telegram token" [":AA"] within 14, 40 certain r"(?:\bbot|\b)([0-9]{8,10}:AA[A-Za-z0-9_-]{32,34})" finds "{d9}:AA{w33}" leaves "12345678:AAA";
    "Twitch token" ["oauth:"] within 1, 40 certain r"\boauth:([a-z0-9]{30})\b" finds "PASS oauth:{l30}" leaves "oauth:token";
    "Mailgun key" ["mailgun"] within 1, 100 certain r"(?i)mailgun[a-z_ ]{0,30}\W{1,6}([0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8})\b" finds "mailgun: {h32}-{h8}-{h8}" leaves "mailgun {u}";
    "Mailchimp key" ["-us"] within 33, 6, needs (32) certain r"\b[0-9a-f]{32}-us[0-9]{1,2}\b" finds "{h32}-us14" leaves "the-us12";
};
