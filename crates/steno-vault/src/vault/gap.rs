//! A gap in a recording: a period when the store could not be written.

use serde::{Deserialize, Serialize};

use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// A period without recording. The log line of the gap has the end time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingGap {
    /// When recording paused.
    pub since: Timestamp,
    /// Why recording paused.
    pub reason: String,
    /// Number of items lost completely or in part.
    pub lost: u64,
    /// The name of one item: `exchange`, `message`.
    pub unit: String,
}

impl RecordingGap {
    /// The loss as text, such as `12 exchanges`; `None` if nothing was lost.
    pub fn describe_loss(&self) -> Option<String> {
        let plural = if self.lost == 1 { "" } else { "s" };
        (self.lost > 0).then(|| format!("{} {}{plural}", self.lost, self.unit))
    }

    /// The notice entry for a gap that ended at `until`. It has no number yet.
    pub(crate) fn to_entry(&self, until: Timestamp) -> Entry {
        let loss =
            self.describe_loss().map(|loss| format!("; {loss} not recorded")).unwrap_or_default();
        let since = self.since;
        let text = format!("recording paused from {since} to {until}: {}{loss}", self.reason);
        let mut entry = Entry::new(Role::System, EntryKind::Notice, text);
        entry.created_at = Some(until);
        let gap = serde_json::to_value(self).expect("our types have string keys");
        let mut metadata = Object::from_iter([("recording_gap".to_owned(), gap)]);
        if let Some(Value::Object(gap)) = metadata.get_mut("recording_gap") {
            gap.insert("until".to_owned(), until.to_string().into());
        }
        entry.metadata = Some(metadata);
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_has_time_reason_and_size() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let gap = |lost| RecordingGap {
            since: at("2026-01-05T09:00:00Z"),
            reason: "No space left on device".to_owned(),
            lost,
            unit: "exchange".to_owned(),
        };
        let text = |lost| gap(lost).to_entry(at("2026-01-05T09:01:00Z")).content;
        let span = "recording paused from 2026-01-05T09:00:00Z to 2026-01-05T09:01:00Z";
        assert_eq!(text(0), format!("{span}: No space left on device"));
        assert_eq!(text(1), format!("{span}: No space left on device; 1 exchange not recorded"));
        assert_eq!(text(12), format!("{span}: No space left on device; 12 exchanges not recorded"));
        let entry = gap(2).to_entry(at("2026-01-05T09:01:00Z"));
        assert_eq!((entry.kind, entry.usage), (EntryKind::Notice, None));
    }
}
