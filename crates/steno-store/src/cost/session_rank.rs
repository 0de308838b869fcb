//! Decides to which session an API message belongs that several have.

/// What ranks the sessions that have a message of the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRank {
    /// When the session started, in milliseconds.
    pub(crate) started: Option<i64>,
    pub(crate) agent: String,
    pub(crate) id: String,
}

/// Whether a session wrote a message before another one. Each is the time of its message in milliseconds, and its rank:
/// the earlier start, then agent and id. An unknown time is later than any other.
pub(crate) fn is_written_first(
    one: (Option<i64>, &SessionRank),
    other: (Option<i64>, &SessionRank),
) -> bool {
    let rank = |(time, session): (Option<i64>, &SessionRank)| {
        let start = (session.started.is_none(), session.started);
        (time.is_none(), time, start)
    };
    let names = |session: &SessionRank| (session.agent.clone(), session.id.clone());
    rank(one).cmp(&rank(other)).then_with(|| names(one.1).cmp(&names(other.1))).is_lt()
}
