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
