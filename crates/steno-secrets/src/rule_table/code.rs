//! Tokens of code hosts, package registries and build services.

use crate::secret_rule::{SecretRule, pattern_rules, token_rules};

pub(crate) const CODE_TOKENS: &[SecretRule] = token_rules! {
    "GitHub token" ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"] Alnum 36..=255 finds "ghp_{A36}" leaves "ghp_token_from_settings";
    "GitHub token" ["ghs_"] Dotted 60..=1000 finds "ghs_{d6}_eyJ{A40}.eyJ{A80}.{w86}" leaves "ghs_installation.token_of_the_app";
    "GitHub token" ["github_pat_"] Word 36..=255 finds "github_pat_11{U9}0{A10}_{A59}" leaves "github_pat_is_fine_grained";
    "GitLab token" ["glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-", "glwt-", "GR1348941"] Dotted 20..=310 finds "glpat-{w20}" leaves "glpat-is-a-prefix";
    "Bitbucket token" ["BBDC-"] Base64 40..=50 finds "BBDC-{b44}" leaves "BBDC-x";
    "pganalyze key" ["pgar_"] Alnum 24..=40 finds "pgar_{A27}" leaves "pgar_x";
    "Bitbucket token" ["ATBB"] Alnum 28..=60 finds "ATBB{A32}" leaves "ATBB short";
    "Bitbucket token" ["ATCTT3xFf"] Loose 60..=300 finds "ATCTT3xFfGN0{w150}" leaves "ATCTT3xFf";
    "Atlassian token" ["ATATT3xFf", "ATSTT3xFf", "ATOTT3xFf"] Loose 60..=300 finds "ATATT3xFfGF0{w170}={U8}" leaves "ATATT3xFf";
    "npm token" ["npm_"] Alnum 36..=36 finds "npm_{A36}" leaves "npm_config_registry";
    "PyPI token" ["pypi-AgE"] Kebab 50..=300 finds "pypi-AgEIcHlwaS5vcmc{w80}" leaves "pypi-simple";
    "RubyGems key" ["rubygems_"] LowerHex 48..=48 finds "rubygems_{h48}" leaves "rubygems_version";
    "NuGet key" ["oy2"] LowerAlnum 43..=43 finds "oy2{l43}" leaves "oy2k";
    "Docker Hub token" ["dckr_pat_", "dckr_oat_"] Kebab 24..=40 finds "dckr_pat_{w27}" leaves "dckr_pat_name";
    "Packagist token" ["packagist_"] Word 40..=90 finds "packagist_ack_{h60}" leaves "packagist_mirror";
    "Clojars token" ["CLOJARS_"] LowerHex 60..=60 finds "CLOJARS_{h60}" leaves "CLOJARS_PASSWORD_FILE";
    "JFrog token" ["AKC"] Alnum 60..=76 finds "AKCp{A69}" leaves "AKCp short";
    "JFrog token" ["cmVmdGtu"] Alnum 50..=64 finds "cmVmdGtuOj{A54}" leaves "cmVmdGtuOj";
    "Sonar token" ["squ_", "sqp_", "sqa_"] LowerHex 40..=40 finds "squ_{h40}" leaves "squ_name";
    "Snyk token" ["snyk_uat.", "snyk_sat."] Dotted 30..=200 finds "snyk_uat.{h8}.{w80}" leaves "snyk_uat.x";
    "Buildkite token" ["bkua_", "bkat_", "bkct_", "bkpt_"] Alnum 40..=60 finds "bkua_{h40}" leaves "bkua_name";
    "Postman key" ["PMAK-"] Kebab 50..=70 finds "PMAK-{h24}-{h34}" leaves "PMAK-x";
    "Readme key" ["rdme_"] LowerAlnum 60..=75 finds "rdme_{l70}" leaves "rdme_name";
    "Figma token" ["figd_", "figdr_", "figu_", "figur_", "figoh_"] Kebab 38..=50 finds "figd_{w40}" leaves "figd_name";
    "Scalingo token" ["tk-us-", "tk-eu-"] Kebab 40..=60 finds "tk-us-{w48}" leaves "tk-us-east";
    "Deno token" ["ddp_", "ddo_"] Alnum 36..=40 finds "ddp_{A36}" leaves "ddp_name";
    "Depot token" ["depot_org_", "depot_project_"] Alnum 40..=80 finds "depot_org_{h64}" leaves "depot_org_name";
};

pub(crate) const CODE_PATTERNS: &[SecretRule] = pattern_rules! {
    "password in URL" ["github.com", "gitlab.com", "bitbucket.org"] within 140, 20, needs ["@github", "@gitlab", "@bitbucket"] certain r#"https?://([A-Za-z0-9_.~%-]{20,})@(?:github\.com|gitlab\.com|bitbucket\.org)"# finds "git clone https://{h40}@github.com/o/r" leaves "https://git@github.com/o/r";
    "npm token" ["_authToken", "_auth=", "_auth ", "_password"] within 2, 120 certain r#"_(?:authToken|auth|password)(?:["']?\s{0,2}=|[ ])\s{0,2}["']?([A-Za-z0-9+/=_.-]{8,})"# finds "//registry.npmjs.org/:_authToken={u}" leaves "//registry.npmjs.org/:_authToken=${NPM_TOKEN}";
    "Docker login" ["\"auth\""] within 2, 300 certain r#""auth\\{0,3}"\s{0,4}:\s{0,4}\\{0,3}"([A-Za-z0-9+/]{12,}={0,2})\\{0,3}""# finds "{\"auths\":{\"ghcr.io\":{\"auth\":\"{b40}\"}}}" leaves "\"auth\": \"basic\"";
};
