//! The order of partitions: the manifest's, with those that it forgot put where their names say.

use super::find::PARTITIONS;
use crate::json::Value;
use crate::source::Source;

/// Partitions from the oldest to the newest; a crash may have left some that no manifest lists.
pub(super) fn in_order<'a>(
    partitions: Vec<&'a Source>,
    manifest: Option<&[u8]>,
) -> Vec<&'a Source> {
    let listed = listed(manifest);
    let place = |source: &Source| listed.iter().position(|file| file_name(file) == name(source));
    let (mut order, mut rest): (Vec<_>, Vec<_>) =
        partitions.into_iter().partition(|source| place(source).is_some());
    order.sort_by_key(|source| place(source));
    rest.sort_by_key(|source| start(source));
    for source in rest {
        let later = order.iter().position(|other| start(other) > start(source));
        order.insert(later.unwrap_or(order.len()), source);
    }
    order
}

fn listed(manifest: Option<&[u8]>) -> Vec<String> {
    let manifest: Option<Value> = manifest.and_then(|bytes| serde_json::from_slice(bytes).ok());
    let partitions = manifest.as_ref().and_then(|manifest| manifest["partitions"].as_array());
    let files = partitions.into_iter().flatten().filter_map(|partition| partition["file"].as_str());
    files.map(str::to_owned).collect()
}

fn name(source: &Source) -> &str {
    source.name().strip_prefix(PARTITIONS).unwrap_or(source.name())
}

fn file_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The second at which a partition begins, from its name `<start>-<end>.jsonl`.
fn start(source: &Source) -> u64 {
    let name = name(source);
    let digits = name.split('-').next().unwrap_or(name);
    digits.parse().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_partition_is_put_between_its_neighbours() {
        let sources: Vec<_> = ["100-200", "300-400", "1000-1100", "50-60"]
            .map(|name| Source::in_memory(format!("{PARTITIONS}{name}.jsonl"), "/x", Vec::new()))
            .into();
        let manifest = br#"{"partitions":[{"file":"partitions/1000-1100.jsonl"},
            {"file":"50-60.jsonl"},{"file":"gone.jsonl"}]}"#;
        let names = |manifest| -> Vec<String> {
            let order = in_order(sources.iter().collect(), manifest);
            order.into_iter().map(|source| name(source).replace(".jsonl", "")).collect()
        };
        assert_eq!(names(None), ["50-60", "100-200", "300-400", "1000-1100"]);
        assert_eq!(names(Some(manifest)), ["100-200", "300-400", "1000-1100", "50-60"]);
        assert_eq!(names(Some(b"torn")), names(None));
    }
}
