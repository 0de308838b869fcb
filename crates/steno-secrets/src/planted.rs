//! Made-up texts to measure with: secrets as people and programs leave them in sessions, and texts that only look so.
//!
//! Eight lists of secrets were written from different points of view: what vendors issue (`vendor_forms`), what people
//! type and programs print (`found_in_the_wild`), and what code and commands contain (`code_and_commands`). The second
//! was kept aside while the rules were written, the third was written after them. `from_scratch` is by an author who had
//! not seen the rules, `in_transcripts`, `typed_passwords` and `in_projects` were each written after the
//! rules were corrected with the one before. `odd_places` is what the rules had missed of four more lists.

mod code_and_commands;
mod found_in_the_wild;
mod from_scratch;
mod in_projects;
mod in_transcripts;
mod look_alikes;
mod look_alikes_from_scratch;
mod look_alikes_in_code;
mod look_alikes_in_odd_places;
mod look_alikes_in_transcripts;
mod odd_places;
mod typed_passwords;
mod vendor_forms;

use crate::made_up::MadeUpTexts;

/// A text with a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedSecret {
    /// The whole text.
    pub text: String,
    /// The secret in it.
    pub secret: String,
}

/// All planted secrets.
pub fn planted_secrets(seed: u64) -> Vec<PlantedSecret> {
    [
        planted_vendor_forms(seed),
        planted_in_the_wild(seed),
        planted_in_code(seed),
        planted_from_scratch(seed),
        planted_in_transcripts(seed),
        planted_typed_passwords(seed),
        planted_in_projects(seed),
        planted_in_odd_places(seed),
    ]
    .concat()
}

/// Keys as vendors issue them, in the places where they are used.
pub fn planted_vendor_forms(seed: u64) -> Vec<PlantedSecret> {
    let mut texts = MadeUpTexts::new(seed);
    let tokens = vendor_forms::TOKENS.iter().zip(vendor_forms::PLACES.iter().cycle());
    let mut planted: Vec<_> = tokens
        .map(|(token, place)| plant(&mut texts, &place.replace('#', &format!("«{token}»"))))
        .collect();
    planted.extend(vendor_forms::TEXTS.iter().map(|template| plant(&mut texts, template)));
    planted
}

/// Secrets as people type them and programs print them.
pub fn planted_in_the_wild(seed: u64) -> Vec<PlantedSecret> {
    plant_all(MadeUpTexts::new(seed ^ 0x77), found_in_the_wild::TEXTS)
}

/// Secrets in code, settings and commands.
pub fn planted_in_code(seed: u64) -> Vec<PlantedSecret> {
    plant_all(MadeUpTexts::new(seed ^ 0x55), code_and_commands::TEXTS)
}

/// Secrets of a list by an author who did not know the rules.
pub fn planted_from_scratch(seed: u64) -> Vec<PlantedSecret> {
    plant_all(MadeUpTexts::new(seed ^ 0x33), from_scratch::TEXTS)
}

/// Secrets in what agents read and print.
pub fn planted_in_transcripts(seed: u64) -> Vec<PlantedSecret> {
    plant_all(MadeUpTexts::new(seed ^ 0x44), in_transcripts::TEXTS)
}

/// Passwords that people choose.
pub fn planted_typed_passwords(seed: u64) -> Vec<PlantedSecret> {
    plant_all(MadeUpTexts::new(seed ^ 0x66), typed_passwords::TEXTS)
}

/// Texts without a secret.
pub fn harmless_texts(seed: u64) -> Vec<String> {
    let mut texts = MadeUpTexts::new(seed ^ 0x99);
    let rounds = 0..look_alikes::ROUNDS;
    let varied =
        rounds.flat_map(|_| look_alikes::VARIED.iter()).map(|template| texts.fill(template));
    let mut all: Vec<String> = varied.collect();
    let lists = [
        look_alikes_in_code::TEXTS,
        look_alikes_from_scratch::TEXTS,
        look_alikes_in_transcripts::TEXTS,
        look_alikes_in_odd_places::TEXTS,
    ];
    all.extend(lists.into_iter().flatten().map(|template| texts.fill(template)));
    all.extend(look_alikes::FIXED.iter().map(|text| (*text).to_owned()));
    all
}

/// Secrets in the files, tests and logs of projects.
pub fn planted_in_projects(seed: u64) -> Vec<PlantedSecret> {
    plant_all(MadeUpTexts::new(seed ^ 0x88), in_projects::TEXTS)
}

/// Secrets in odd syntax, tables, lists and output.
pub fn planted_in_odd_places(seed: u64) -> Vec<PlantedSecret> {
    plant_all(MadeUpTexts::new(seed ^ 0xaa), odd_places::TEXTS)
}

fn plant_all(mut texts: MadeUpTexts, templates: &[&str]) -> Vec<PlantedSecret> {
    templates.iter().map(|template| plant(&mut texts, template)).collect()
}

/// Fills a template whose secret is between `«` and `»`.
fn plant(texts: &mut MadeUpTexts, template: &str) -> PlantedSecret {
    let filled = texts.fill(template);
    let start = filled.find('«').expect("a template marks its secret");
    let end = filled.find('»').expect("a template marks its secret");
    let secret = filled[start + '«'.len_utf8()..end].to_owned();
    PlantedSecret { text: filled.replace(['«', '»'], ""), secret }
}

#[cfg(test)]
mod tests;
