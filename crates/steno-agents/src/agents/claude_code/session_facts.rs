//! Collects metadata of the session as a whole from the records of its file.

use std::collections::VecDeque;

use uuid::Uuid;

use super::record::ClaudeRecord;
use steno_model::json::Value;
use steno_model::name_hash::CompactNameSet;
use steno_model::session::Session;
use steno_model::timestamp::Timestamp;

/// How many summaries are kept. The oldest are dropped, since the last one is the title.
const MAX_SUMMARIES: usize = 1000;

/// Session metadata, collected record by record.
#[derive(Debug, Default)]
pub(super) struct ClaudeSessionFacts {
    started: Option<Timestamp>,
    ended: Option<Timestamp>,
    project: Option<String>,
    branch: Option<String>,
    version: Option<String>,
    entrypoint: Option<String>,
    forked_from: Option<String>,
    custom_title: Option<String>,
    ai_title: Option<String>,
    /// Conversation titles, each with the UUID of the conversation's last record.
    summaries: VecDeque<(String, String)>,
    uuids: CompactNameSet,
    tag: Option<String>,
    stop_reason: Option<String>,
    cost: Option<f64>,
}

impl ClaudeSessionFacts {
    /// Notes the metadata of a record, and the time at which it was written.
    pub(super) fn note_record(&mut self, record: &ClaudeRecord<'_>, at: Option<Timestamp>) {
        if let Some(at) = at {
            self.note_time(at);
        }
        if let Some(uuid) = record.uuid.text() {
            self.uuids.insert(record_uuid(uuid));
        }
        set_first(&mut self.project, record.cwd.text());
        set_first(&mut self.branch, record.git_branch.text());
        set_first(&mut self.entrypoint, record.entrypoint.text());
        set_last(&mut self.version, record.version.text());
        let fork = record.forked_from.object().and_then(|fork| fork.session_id.text());
        set_first(&mut self.forked_from, fork);
        match record.kind() {
            "summary" => {
                let summary = record.leaf_uuid.owned_text().zip(record.summary.owned_text());
                self.summaries.extend(summary);
                if self.summaries.len() > MAX_SUMMARIES {
                    self.summaries.pop_front();
                }
            }
            "custom-title" => set_last(&mut self.custom_title, record.custom_title.text()),
            "ai-title" => set_last(&mut self.ai_title, record.ai_title.text()),
            "tag" => set_last(&mut self.tag, record.tag.text()),
            "cost-state" => {
                let cost = record.total_cost.and_then(|cost| cost.0.parse().ok());
                self.cost = cost.filter(|cost: &f64| cost.is_finite()).or(self.cost);
            }
            "assistant" if !record.is_sidechain.is_true() => {
                let reason = record.message.object().and_then(|message| message.stop_reason.text());
                set_last(&mut self.stop_reason, reason);
            }
            _ => {}
        }
    }

    /// Whether a record with the project folder was seen.
    pub(super) fn has_project(&self) -> bool {
        self.project.is_some()
    }

    fn note_time(&mut self, at: Timestamp) {
        if self.started.is_none_or(|started| at.instant() < started.instant()) {
            self.started = Some(at);
        }
        if self.ended.is_none_or(|ended| at.instant() > ended.instant()) {
            self.ended = Some(at);
        }
    }

    /// Fills in the session. A summary is its title only if the conversation's last record is in this file.
    pub(super) fn fill_session(self, session: &mut Session) {
        let uuids = self.uuids;
        let mut own =
            self.summaries.into_iter().rev().filter(|(leaf, _)| uuids.contains(record_uuid(leaf)));
        let titles = [self.custom_title, self.ai_title, own.next().map(|(_, summary)| summary)];
        session.title = titles.into_iter().flatten().find(|title| !title.trim().is_empty());
        session.started = self.started;
        session.ended = self.ended;
        session.project = self.project;
        session.branch = self.branch;
        session.parent = self.forked_from;
        session.stop_reason = self.stop_reason;
        session.totals.cost = self.cost;
        let tag = self.tag.filter(|tag| !tag.is_empty());
        for (name, value) in
            [("version", self.version), ("entrypoint", self.entrypoint), ("tag", tag)]
        {
            if let Some(value) = value {
                session.extra.insert(name.to_owned(), Value::String(value));
            }
        }
    }
}

/// A record's UUID. An id in another form is hashed into one.
fn record_uuid(id: &str) -> Uuid {
    Uuid::parse_str(id).unwrap_or_else(|_| Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes()))
}

fn set_first(fact: &mut Option<String>, value: Option<&str>) {
    if fact.is_none() {
        *fact = value.map(str::to_owned);
    }
}

fn set_last(fact: &mut Option<String>, value: Option<&str>) {
    if let Some(value) = value
        && fact.as_deref() != Some(value)
    {
        *fact = Some(value.to_owned());
    }
}
