//! What the readers of several formats share: JSON, files of records, entries and their ids.

pub mod agent_message;
pub mod attachment;
pub mod document;
pub mod entries;
pub mod entry_emitter;
pub mod file_head;
pub mod json_fields;
pub mod json_lines;
pub mod json_records;
pub mod json_repair;
pub mod json_walker;
#[cfg(any(test, feature = "test-support"))]
pub mod large;
pub mod message_ids;
pub mod record_list;
pub mod session_emitter;
pub mod shared_log;
pub mod shared_texts;
#[cfg(test)]
pub mod temporary_vault;
pub mod tool_names;
#[cfg(test)]
pub mod trial;
pub mod usage;
pub mod zip_archive;
