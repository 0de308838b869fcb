//! The facts of two sessions, side by side.

use crate::amount::format_dollars;
use steno_model::{Session, Timestamp};

/// Formats a time.
pub type TimeFormatter<'a> = &'a dyn Fn(Timestamp) -> String;

/// One fact.
pub struct SessionFact {
    /// The fact's name.
    pub name: &'static str,
    /// The first session's value.
    pub a: String,
    /// The second session's value.
    pub b: String,
}

/// Every fact that at least one session has.
pub fn compare_facts(a: &Session, b: &Session, clock: TimeFormatter<'_>) -> Vec<SessionFact> {
    let points = session_points(a, clock).into_iter().zip(session_points(b, clock));
    let facts = points.map(|((name, a), (_, b))| SessionFact { name, a, b });
    facts.filter(|fact| !fact.a.is_empty() || !fact.b.is_empty()).collect()
}

fn session_points(session: &Session, clock: TimeFormatter<'_>) -> Vec<(&'static str, String)> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let time = |at: Option<Timestamp>| at.map(clock).unwrap_or_default();
    let usage = &session.totals.usage;
    let tokens = format!("{} in, {} out", usage.prompt_tokens(), usage.output);
    vec![
        ("session", session.id.to_string()),
        ("agent", session.agent.clone()),
        ("title", text(&session.title)),
        ("project", text(&session.project)),
        ("branch", text(&session.branch)),
        ("models", session.models.join(", ")),
        ("started", time(session.started)),
        ("ended", time(session.ended)),
        ("status", session.status.to_string()),
        ("reason", text(&session.stop_reason)),
        ("entries", session.totals.entries.to_string()),
        ("tokens", if usage.is_empty() { String::new() } else { tokens }),
        ("cost", session.totals.cost.map(format_dollars).unwrap_or_default()),
    ]
}
