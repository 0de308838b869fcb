//! Keys of payment, monitoring and office services.

use crate::secret_rule::{SecretRule, pattern_rules, token_rules};

pub(crate) const SERVICE_TOKENS: &[SecretRule] = token_rules! {
    "Stripe key" ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_sbox_", "sk_prod_", "sk_org_live_"] Word 16..=260 finds "sk_live_{A24}" leaves "sk_live_mode_is_on";
    "webhook secret" ["whsec_"] Base64 24..=80 finds "whsec_{A32}" leaves "whsec_name";
    "Square token" ["sq0csp-", "sq0atp-"] Kebab 22..=50 finds "sq0atp-{w22}" leaves "sq0atp-x";
    "Square token" ["EAAAE", "EAAAl"] Kebab 55..=70 finds "EAAAE{w59}" leaves "EAAAE short";
    "Shopify token" ["shpat_", "shpca_", "shppa_", "shpss_", "shptka_", "shpua_"] Alnum 32..=40 finds "shpat_{h32}" leaves "shpat_name";
    "Plaid token" ["access-sandbox-", "access-development-", "access-production-"] Kebab 36..=36 finds "access-production-{u}" leaves "access-sandbox-docs";
    "Paddle key" ["pdl_live_apikey_", "pdl_sdbx_apikey_", "pdl_ntfset_"] Word 40..=80 finds "pdl_live_apikey_{l26}_{A22}_{A3}" leaves "pdl_live_apikey_x";
    "Flutterwave key" ["FLWSECK-", "FLWSECK_TEST-", "FLWSECK_TEST"] Kebab 12..=50 finds "FLWSECK-{h32}-X" leaves "FLWSECK-x";
    "Razorpay key" ["rzp_live_", "rzp_test_"] Alnum 14..=20 finds "rzp_live_{A14}" leaves "rzp_live_mode";
    "Mollie key" ["live_", "test_"] Alnum 30..=44 finds "live_{A30}" leaves "live_reload_enabled";
    "GoCardless token" ["sandbox_"] Kebab 40..=40 finds "sandbox_{A40}" leaves "sandbox_mode";
    "EasyPost key" ["EZAK", "EZTK"] Alnum 54..=54 finds "EZAK{A54}" leaves "EZAK short";
    "Shippo token" ["shippo_live_", "shippo_test_"] LowerHex 40..=40 finds "shippo_live_{h40}" leaves "shippo_live_x";
    "Duffel token" ["duffel_live_", "duffel_test_"] Kebab 43..=43 finds "duffel_live_{w43}" leaves "duffel_test_x";
    "Adafruit key" ["aio_"] Alnum 28..=28 finds "aio_{A28}" leaves "aio_read";
    "Adyen key" ["AQEyhmfxK", "AQEyhm"] Loose 80..=400 finds "AQEyhmfxK{b120}" leaves "AQEyhm";
    "Polar token" ["polar_oat_", "polar_pat_", "polar_whs_"] Alnum 30..=60 finds "polar_oat_{A43}" leaves "polar_oat_x";
    "New Relic key" ["NRAK-", "NRII-", "NRIQ-", "NRRA-", "NRBR-", "NRSP-", "NRAA-"] Kebab 18..=50 finds "NRAK-{U27}" leaves "NRAK-x";
    "Sentry token" ["sntrys_", "sntryu_"] Loose 40..=400 finds "sntryu_{h64}" leaves "sntrys_x";
    "Grafana token" ["glsa_"] Word 38..=50 finds "glsa_{A32}_{h8}" leaves "glsa_name";
    "Grafana token" ["glc_"] Base64 32..=400 finds "glc_eyJ{b120}" leaves "glc_name";
    "Grafana key" ["eyJrIjoi"] Base64 60..=400 finds "eyJrIjoi{b72}" leaves "eyJrIjoi";
    "Honeycomb key" ["hcaik_", "hcaic_", "hcxik_", "hcbik_"] LowerAlnum 50..=66 finds "hcaik_{l58}" leaves "hcaik_x";
    "PagerDuty key" ["pdus+_"] Kebab 20..=60 finds "pdus+_0XBPWQ_{A36}" leaves "pdus+_x";
    "PostHog key" ["phx_", "phs_", "pha_"] Kebab 40..=60 finds "phx_{A43}" leaves "phc_{A43}";
    "Axiom token" ["xaat-", "xapt-"] Kebab 36..=36 finds "xaat-{u}" leaves "xaat-x";
    "Dynatrace token" ["dt0c01.", "dt0s01.", "dt0s02.", "dt0s06.", "dt0s16."] Dotted 80..=100 finds "dt0c01.{U24}.{U64}" leaves "dt0c01.x";
    "Checkly key" ["cu_"] LowerHex 32..=32 finds "cu_{h32}" leaves "cu_name";
    "Statsig key" ["secret-"] Alnum 40..=50 finds "secret-{A43}" leaves "secret-manager-access";
    "Stytch secret" ["secret-live-", "secret-test-"] Kebab 30..=60 finds "secret-live-{w45}" leaves "secret-live-x";
    "Linear key" ["lin_api_", "lin_oauth_", "lin_wh_"] Alnum 32..=70 finds "lin_api_{A40}" leaves "lin_api_client";
    "Notion token" ["ntn_"] Alnum 40..=50 finds "ntn_{d11}{A35}" leaves "ntn_page";
    "Notion token" ["secret_"] Alnum 40..=50 finds "secret_{A43}" leaves "secret_manager_access_key";
    "Trello token" ["ATTA"] LowerHex 64..=80 finds "ATTA{h72}" leaves "ATTACHED";
    "Contentful token" ["CFPAT-"] Kebab 40..=50 finds "CFPAT-{w43}" leaves "CFPAT-x";
    "Typeform token" ["tfp_"] Word 40..=70 finds "tfp_{A44}_{A10}" leaves "tfp_x";
    "HubSpot token" ["pat-na1-", "pat-na2-", "pat-eu1-", "pat-ap1-"] Kebab 36..=36 finds "pat-na1-{u}" leaves "pat-na1-x";
    "Webflow token" ["ws-"] LowerHex 64..=64 finds "ws-{h64}" leaves "ws-client";
    "Frame.io token" ["fio-u-"] Loose 60..=70 finds "fio-u-{w64}" leaves "fio-u-x";
    "Sanity token" ["skPd", "skE", "skW"] Alnum 70..=220 finds "skE{A160}" leaves "skEleton";
    "Mapbox token" ["sk.eyJ", "tk.eyJ"] Dotted 60..=300 finds "sk.eyJ{A80}.{A22}" leaves "pk.eyJ{A80}.{A22}";
    "Cal.com key" ["cal_live_", "cal_test_"] Alnum 30..=40 finds "cal_live_{h32}" leaves "cal_live_x";
    "Retool token" ["retool_01"] Alnum 20..=60 finds "retool_01{A26}" leaves "retool_01";
    "Endor Labs key" ["endr+"] Base64 16..=40 finds "endr+{A20}" leaves "endr+x";
    "Raycast token" ["rca_"] LowerHex 64..=64 finds "rca_{h64}" leaves "rca_x";
    "Settlemint token" ["sm_pat_", "sm_aat_", "sm_sat_"] Alnum 16..=20 finds "sm_aat_{A16}" leaves "sm_aat_x";
    "Infracost key" ["ico-"] Alnum 32..=32 finds "ico-{A32}" leaves "ico-home";
    "Nylas key" ["nyk_v0_", "nyl_"] Alnum 40..=80 finds "nyk_v0_{A64}" leaves "nyk_v0_x";
};

pub(crate) const SERVICE_PATTERNS: &[SecretRule] = pattern_rules! {
    "LaunchDarkly key" ["sdk-", "api-"] within 1, 60 certain r"\b(?:sdk|api)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b" finds "sdk-{u}" leaves "sdk-for-node";
    "PayPal token" ["access_token$"] within 1, 120 certain r"access_token\$(?:production|sandbox)\$[a-z0-9]{10,20}\$[a-f0-9]{32}" finds "access_token$production${l16}${h32}" leaves "access_token$x";
    "PayPal token" ["A21AA"] within 1, 140 certain r"\bA21AA[A-Za-z0-9_-]{80,}" finds "A21AA{w92}" leaves "A21AA short";
    "New Relic key" ["NRAL"] within 40, 1 certain r"\b[a-f0-9]{36}NRAL\b" finds "{h36}NRAL" leaves "NRAL";
    "Sentry DSN secret" [".ingest.sentry.io", "sentry.io"] within 90, 10 certain r"https://[0-9a-f]{32}:([0-9a-f]{32})@" finds "https://{h32}:{h32}@o1.ingest.sentry.io/1" leaves "https://{h32}@o1.ingest.sentry.io/1";
    "Airtable token" ["pat"] within 1, 90 certain r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b" finds "pat{A14}.{h64}" leaves "path.join.parts";
    "Asana token" ["1/", "2/"] within 1, 70 certain r"\b[12]/[0-9]{13,20}(?:/[0-9]{13,20})?:[0-9a-f]{32}\b" finds "1/{d16}:{h32}" leaves "1/2:3";
    "ClickUp token" ["pk_"] within 1, 50 certain r"\bpk_[0-9]{6,10}_[A-Z0-9]{32}\b" finds "pk_{d8}_{U32}" leaves "pk_live_{A24}";
    "Typesense key" ["X-TYPESENSE-API-KEY"] within 1, 80 certain r"(?i)X-TYPESENSE-API-KEY\W{1,6}([a-z0-9]{20,64})" finds "X-TYPESENSE-API-KEY: {A32}" leaves "X-TYPESENSE-API-KEY: ${KEY}";
    "Segment key" ["segment"] within 1, 90 certain r#"(?i)segment[a-z_.-]{0,20}key["'\\]{0,3}\s{0,4}[:=]\s{0,4}["'\\]{0,3}([a-z0-9]{32})\b"# finds "SEGMENT_WRITE_KEY={A32}" leaves "segment_key=none";
};
