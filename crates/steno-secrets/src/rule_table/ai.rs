//! Keys of model providers and of tools around models.

use crate::secret_rule::{SecretRule, pattern_rules, token_rules};

pub(crate) const AI_TOKENS: &[SecretRule] = token_rules! {
    "Anthropic key" ["sk-ant-"] Kebab 20..=220 finds "sk-ant-api03-{w93}AA" leaves "sk-ant-short";
    "OpenRouter key" ["sk-or-v1-", "sk-or-"] LowerHex 40..=80 finds "sk-or-v1-{h64}" leaves "sk-or-v1-{h16}";
    "OpenAI key" ["sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"] Kebab 20..=300 finds "sk-proj-{w48}" leaves "sk-proj-abc";
    "Langfuse key" ["sk-lf-"] Kebab 30..=60 finds "sk-lf-{u}" leaves "pk-lf-{u}";
    "Helicone key" ["sk-helicone-"] Kebab 20..=80 finds "sk-helicone-{l7}-{l7}-{l7}-{l7}" leaves "sk-helicone-docs";
    "Groq key" ["gsk_"] Alnum 20..=80 finds "gsk_{A52}" leaves "gsk_model_name";
    "xAI key" ["xai-"] Word 20..=120 finds "xai-{A80}" leaves "xai-grok-beta";
    "Perplexity key" ["pplx-"] Alnum 20..=80 finds "pplx-{A48}" leaves "pplx-online-large";
    "Replicate token" ["r8_"] Alnum 30..=60 finds "r8_{A37}" leaves "r8_unorm";
    "Hugging Face token" ["hf_", "api_org_"] Alnum 30..=60 finds "hf_{M34}" leaves "hf_hub_download";
    "Fireworks key" ["fw_"] Alnum 20..=60 finds "fw_{A24}" leaves "fw_version_2";
    "Together key" ["tgp_v1_"] Kebab 30..=80 finds "tgp_v1_{w43}" leaves "tgp_v1_beta";
    "ElevenLabs key" ["sk_"] LowerHex 48..=64 finds "sk_{h48}" leaves "sk_{h12}";
    "LangSmith key" ["lsv2_pt_", "lsv2_sk_", "lsv2_st_", "ls__"] Word 30..=80 finds "lsv2_pt_{h32}_{h10}" leaves "lsv2_pt_docs";
    "NVIDIA key" ["nvapi-"] Kebab 40..=120 finds "nvapi-{w64}" leaves "nvapi-docs-and-more";
    "Cerebras key" ["csk-"] LowerAlnum 30..=80 finds "csk-{l48}" leaves "csk-short";
    "Anyscale key" ["esecret_"] LowerAlnum 20..=60 finds "esecret_{l30}" leaves "esecret_name";
    "Voyage key" ["pa-"] Kebab 43..=60 finds "pa-{w43}" leaves "pa-system-for-the-hall";
    "Jina key" ["jina_"] Alnum 40..=80 finds "jina_{A60}" leaves "jina_embeddings_v3";
    "Tavily key" ["tvly-"] Kebab 20..=60 finds "tvly-{A32}" leaves "tvly-dev";
    "Firecrawl key" ["fc-"] LowerHex 32..=32 finds "fc-{h32}" leaves "fc-{h31}";
    "Weights & Biases key" ["wandb_v1_"] Kebab 40..=120 finds "wandb_v1_{w77}" leaves "wandb_v1_migration";
    "Pinecone key" ["pcsk_"] Word 40..=90 finds "pcsk_{A6}_{A63}" leaves "pcsk_index_name";
    "Cursor key" ["crsr_", "key_"] LowerHex 64..=64 finds "crsr_{h64}" leaves "key_{h40}";
    "E2B key" ["e2b_", "sk_e2b_"] LowerHex 40..=40 finds "e2b_{h40}" leaves "e2b_code_interpreter";
    "Daytona key" ["dtn_"] LowerHex 64..=64 finds "dtn_{h64}" leaves "dtn_{h12}";
    "Browserbase key" ["bb_live_"] Kebab 20..=60 finds "bb_live_{w27}" leaves "bb_live_mode";
    "Apify token" ["apify_api_"] Alnum 30..=60 finds "apify_api_{A36}" leaves "apify_api_client";
    "Mem0 key" ["m0-"] Alnum 40..=40 finds "m0-{A40}" leaves "m0-{A12}";
    "Composio key" ["ak_"] Alnum 20..=24 finds "ak_{A20}" leaves "ak_short_name";
    "Sourcegraph token" ["sgp_", "slk_", "sgd_", "sgamp_user_"] Word 32..=120 finds "sgp_{h16}_{h40}" leaves "sgp_access_token";
    "RunPod key" ["rpa_"] Alnum 36..=60 finds "rpa_{U40}" leaves "rpa_name";
    "Brave key" ["BSA"] Kebab 28..=28 finds "BSA{A28}" leaves "BSA short";
    "Roboflow key" ["rf_"] Alnum 20..=32 finds "rf_{A20}" leaves "rf_classifier";
    "OpenPipe key" ["opk_"] LowerHex 36..=60 finds "opk_{h40}" leaves "opk_x";
    "Coze token" ["pat_"] Alnum 60..=80 finds "pat_{A64}" leaves "pat_name";
    "Context7 key" ["ctx7sk-"] Kebab 30..=60 finds "ctx7sk-{u}" leaves "ctx7sk-x";
    "Factory key" ["fk-"] Kebab 40..=80 finds "fk-{w44}" leaves "fk-users-and-orders";
    "Val Town token" ["vtwn_"] Alnum 24..=60 finds "vtwn_{A32}" leaves "vtwn_x";
    "LlamaCloud key" ["llx-"] Kebab 40..=60 finds "llx-{A48}" leaves "llx-x";
    "Lakera key" ["lkr_"] LowerHex 60..=70 finds "lkr_{h64}" leaves "lkr_x";
    "Stability key" ["stab-"] Alnum 36..=60 finds "stab-{A48}" leaves "stab-x";
    "Exa key" ["exa_"] Kebab 30..=44 finds "exa_{u}" leaves "exa_flops";
    "Baseten key" ["bst_"] Alnum 30..=60 finds "bst_{A40}" leaves "bst_node";
    "Hyperbrowser key" ["hb_"] LowerHex 28..=40 finds "hb_{h28}" leaves "hb_ttl";
};

pub(crate) const AI_PATTERNS: &[SecretRule] = pattern_rules! {
    "OpenAI key" ["sk-"] within 1, 320 certain r"\bsk-([A-Za-z0-9]{20}[A-Za-z0-9_-]*)" finds "sk-{A48}" leaves "sk-learn-preprocessing-pipeline-steps";
    "OpenAI key" ["T3BlbkFJ"] within 120, 140 certain r"\bsk-[A-Za-z0-9_-]{20,}T3BlbkFJ[A-Za-z0-9_-]{20,}" finds "sk-{A20}T3BlbkFJ{A20}" leaves "T3BlbkFJ is OpenAI in base64";
    "Modal token" ["as-"] within 1, 40, needs (22) certain r"\bas-[A-Za-z0-9]{22}\b" finds "as-{A22}" leaves "as-needed-by-the-caller";
    "Azure AI key" ["JQQJ99"] within 60, 60 certain r"\b[A-Za-z0-9]{50,54}JQQJ99[A-Za-z0-9]{14,40}" finds "{A52}JQQJ99{A26}" leaves "JQQJ99";
    "Google AI key" ["AQ.Ab"] within 1, 90 certain r"\bAQ\.Ab[A-Za-z0-9_-]{35,70}" finds "AQ.Ab8R{w46}" leaves "AQ.Ab8";
};
