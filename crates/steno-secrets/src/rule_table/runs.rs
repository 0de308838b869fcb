//! Tokens whose start is so short that it is in many words. They are looked for only where long runs of letters and
//! digits start.

use crate::secret_rule::{SecretRule, run_rules};

pub(crate) const RUN_PATTERNS: &[SecretRule] = run_rules! {
    "Discord token" ["MT", "MD", "Mj", "Mz", "NT", "ND", "Nj", "Nz", "OT", "OD", "Oj", "Oz"] from 0 to 90 r"[MNO][TjzD][A-Za-z0-9_-]{22,26}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,42}" finds "MTA{A23}.{A6}.{A38}" leaves "MTA{A23}";
    "Twilio key" ["AC"] from 0 to 90 r#"AC[0-9a-f]{32}["']?(?::|,? )\s{0,2}["']?([0-9a-f]{32})\b"# finds "AC{h32}:{h32}" leaves "AC{h32}";
    "Twilio key" ["SK"] from 0 to 40 r"SK[0-9a-f]{32}\b" finds "SK{h32}" leaves "SKU0123456789";
    "Vault token" ["s."] from 2 to 30 r"s\.([A-Za-z0-9]{24})\b" finds "s.{A24}" leaves "s.someMethodNameOfTwentyFo";
    "Infisical token" ["st."] from 3 to 130 r"st\.(?:[a-f0-9]{24}|[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12})\.[a-f0-9]{32}\.[a-f0-9]{32}\b" finds "st.{h24}.{h32}.{h32}" leaves "st.executed";
    "Bitwarden token" ["0."] from 2 to 110 r"0\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.[A-Za-z0-9]{30}:[A-Za-z0-9+/]{22}==" finds "0.{u}.{A30}:{b22}==" leaves "0.{u}";
    "Airtable token" ["pat"] from 18 to 90 r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}\b" finds "pat{A14}.{h64}" leaves "path.join.parts";
    "crates.io token" ["cio"] from 0 to 40 r"cio[A-Za-z0-9]{32}\b" finds "cio{A32}" leaves "ciopfs";
    "Spotify token" ["BQ"] from 0 to 320 r"BQ[A-D][A-Za-z0-9_-]{100,}" finds "BQD{w160}" leaves "BQ short";
    "LinkedIn token" ["AQ"] from 0 to 500 r"AQ[UVWX][A-Za-z0-9_-]{150,}" finds "AQV{w300}" leaves "AQV short";
    "Bitcoin key" ["5H", "5J", "5K"] from 0 to 60 r"5[HJK][1-9A-HJ-NP-Za-km-z]{49}\b" finds "5JGeb9QfXhe5f1vXHcFDnXbvcXShxAFhAxaRp1jr5Bqe3Lr2uxJ" leaves "5KB of text";
    "Bitcoin key" ["Kw", "Kx", "Ky", "Kz", "L1", "L2", "L3", "L4", "L5"] from 0 to 60 r"[KL][1-9A-HJ-NP-Za-km-z]{51}\b" finds "KxMASi45ub7Qe4ZE36UT5G6cU4ud8Fhhe4deS4F3cw9KTAb8dLcu" leaves "L2 of the cache";
    "Sanity token" ["sk"] from 0 to 240 r"sk[A-Za-z0-9]{150,220}\b" finds "skS{A177}" leaves "skip_the_next_twenty_entries";
    "Resend key" ["re_"] from 0 to 50 r"re_[A-Za-z0-9]{8,10}_[A-Za-z0-9]{20,30}\b" finds "re_{A8}_{A24}" leaves "re_compile_pattern_of_strings";
};
