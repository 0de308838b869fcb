//! Sorts partitions by the manifest; those that it does not list are inserted by the start time in their names.

use std::collections::HashMap;

use super::context_files::PARTITIONS_FOLDER;
use steno_model::json::Value;
use steno_vault::SessionFile;

/// Sorts partitions from oldest to newest. After a crash some may be missing in the manifest.
pub(super) fn sort_partitions<'a>(
    partitions: Vec<&'a SessionFile>,
    manifest: Option<&[u8]>,
) -> Vec<&'a SessionFile> {
    let names = listed_partitions(manifest);
    let mut indexes = HashMap::new();
    for (index, file) in names.iter().enumerate() {
        indexes.entry(file_name(file)).or_insert(index);
    }
    let index_of = |source: &SessionFile| indexes.get(partition_name(source)).copied();
    let (mut listed, mut unlisted): (Vec<_>, Vec<_>) =
        partitions.into_iter().partition(|source| index_of(source).is_some());
    listed.sort_by_key(|source| index_of(source));
    unlisted.sort_by_cached_key(|source| partition_start(source));
    // Each is inserted before the first listed one that starts later.
    let (mut order, mut latest) = (Vec::new(), 0);
    let mut unlisted = unlisted.into_iter().peekable();
    for source in listed {
        latest = latest.max(partition_start(source));
        while let Some(earlier) = unlisted.next_if(|unlisted| partition_start(unlisted) < latest) {
            order.push(earlier);
        }
        order.push(source);
    }
    order.extend(unlisted);
    order
}

fn listed_partitions(manifest: Option<&[u8]>) -> Vec<String> {
    let manifest: Option<Value> = manifest.and_then(|bytes| serde_json::from_slice(bytes).ok());
    let partitions = manifest.as_ref().and_then(|manifest| manifest["partitions"].as_array());
    let files = partitions.into_iter().flatten().filter_map(|partition| partition["file"].as_str());
    files.map(str::to_owned).collect()
}

fn partition_name(source: &SessionFile) -> &str {
    source.name().strip_prefix(PARTITIONS_FOLDER).unwrap_or(source.name())
}

fn file_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// The second at which a partition starts, from its name `<start>-<end>.jsonl`.
fn partition_start(source: &SessionFile) -> u64 {
    let name = partition_name(source);
    let digits = name.split('-').next().unwrap_or(name);
    digits.parse().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forgotten_partition_is_put_between_its_neighbours() {
        let sources: Vec<_> = ["100-200", "300-400", "1000-1100", "50-60"]
            .map(|name| {
                SessionFile::in_memory(format!("{PARTITIONS_FOLDER}{name}.jsonl"), "/x", Vec::new())
            })
            .into();
        let manifest = br#"{"partitions":[{"file":"partitions/1000-1100.jsonl"},
            {"file":"50-60.jsonl"},{"file":"gone.jsonl"}]}"#;
        let names = |manifest| -> Vec<String> {
            let order = sort_partitions(sources.iter().collect(), manifest);
            order.into_iter().map(|source| partition_name(source).replace(".jsonl", "")).collect()
        };
        assert_eq!(names(None), ["50-60", "100-200", "300-400", "1000-1100"]);
        assert_eq!(names(Some(manifest)), ["100-200", "300-400", "1000-1100", "50-60"]);
        assert_eq!(names(Some(b"torn")), names(None));
    }
}
