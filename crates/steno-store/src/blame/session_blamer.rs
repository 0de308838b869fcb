//! Finds the session that wrote each line of a file.

use std::collections::HashMap;
use std::rc::Rc;

use super::commit_clues::NotedWriter;
use super::edit_archive::EditArchive;
use super::line_judge::{EditTimeLimits, JudgedLine, LineContext, judge_line};
use super::line_origin::{LineOrigin, OriginCertainty, OriginEntry, OriginPrompt};
use super::repository_scope::RepositoryScope;
use super::{BlamedFile, BlamedLine, shown_lines};
use crate::index::{Index, IndexError};
use steno_model::timestamp::Timestamp;
use steno_vault::Vault;

/// Finds the sessions that wrote lines. One blamer for many lines reads each session once.
pub struct SessionBlamer<'a> {
    archive: EditArchive<'a>,
    now: Timestamp,
    /// Files as they were in commits.
    versions: HashMap<(String, String), Rc<Vec<String>>>,
    entries: HashMap<(i64, u64), OriginEntry>,
}

impl<'a> SessionBlamer<'a> {
    /// A blamer for the sessions of one repository. Lines that are not committed may be as new as `now`.
    pub fn new(
        index: &'a Index,
        vault: &'a Vault,
        scope: &'a RepositoryScope,
        now: Timestamp,
    ) -> Self {
        let archive = EditArchive::new(index, vault, scope);
        Self { archive, now, versions: HashMap::new(), entries: HashMap::new() }
    }

    /// The origins of the lines that are asked about, in their order.
    pub fn find_origins(&mut self, file: &BlamedFile) -> Result<Vec<LineOrigin>, IndexError> {
        file.blamed.iter().map(|line| self.find_origin(file, line)).collect()
    }

    fn find_origin(
        &mut self,
        file: &BlamedFile,
        line: &BlamedLine,
    ) -> Result<LineOrigin, IndexError> {
        let mut judged = match self.current_context(file, line) {
            Some(context) => judge_line(&mut self.archive, context)?,
            None => None,
        };
        if judged.as_ref().is_none_or(|judged| !judged.is_certain)
            && let Some(version) = self.original_version(file, line)
            && *version != file.lines
            && let Some(context) = original_context(file, line, &version, self.time_limits(line))
        {
            let older = judge_line(&mut self.archive, context)?;
            if judged.is_none() || older.as_ref().is_some_and(|older| older.is_certain) {
                judged = older;
            }
        }
        let mut origin = LineOrigin {
            line: line.clone(),
            certainty: OriginCertainty::Unknown,
            entry: None,
            evidence: Vec::new(),
        };
        let mut session_row = None;
        if let Some(JudgedLine { writer, is_certain, reason, .. }) = judged {
            session_row = Some(writer.hit.session_row);
            origin.entry =
                self.load_entry(writer.hit.session_row, writer.hit.number, writer.hit.time)?;
            origin.certainty =
                if is_certain { OriginCertainty::Certain } else { OriginCertainty::Likely };
            origin.evidence.push(reason);
        }
        self.add_clues(file, session_row, &mut origin)?;
        Ok(origin)
    }

    fn time_limits(&self, line: &BlamedLine) -> EditTimeLimits {
        let now = self.now.instant().as_millisecond();
        if line.commit.is_none() {
            return EditTimeLimits { until: now, certain_until: now };
        }
        let end_of = |seconds: i64| seconds.saturating_mul(1000).saturating_add(999);
        let until = end_of(line.committer_time);
        EditTimeLimits { until, certain_until: end_of(line.author_time).min(until) }
    }

    fn current_context<'b>(
        &self,
        file: &'b BlamedFile,
        line: &'b BlamedLine,
    ) -> Option<LineContext<'b>> {
        let at = line.number.checked_sub(1)?;
        file.lines.get(at)?;
        let limits = self.time_limits(line);
        let paths = [file.path.as_str(), line.original_path.as_str()];
        Some(LineContext { lines: &file.lines, at, paths, limits })
    }

    /// Finds the prompt before an entry. A picture is shown beside the words that came with it, so those count.
    fn find_prompt(
        &mut self,
        session_row: i64,
        number: u64,
    ) -> Result<Option<OriginPrompt>, IndexError> {
        let (mut before, mut picture) = (number, None);
        while let Some(prompt) = self.archive.index().prompt_before(session_row, before)? {
            before = prompt.number;
            let text = prompt.text_row.map(|row| self.archive.text(row)).transpose()?;
            let text = text.as_deref().unwrap_or_default().to_owned();
            let is_picture = is_picture(&text);
            let found = OriginPrompt { number: prompt.number, text };
            if !is_picture {
                return Ok(Some(found));
            }
            picture = picture.or(Some(found));
        }
        Ok(picture)
    }

    /// The file as it was in the commit that wrote the line.
    fn original_version(
        &mut self,
        file: &BlamedFile,
        line: &BlamedLine,
    ) -> Option<Rc<Vec<String>>> {
        let key = (line.commit.clone()?, line.original_path.clone());
        if let Some(known) = self.versions.get(&key) {
            return Some(Rc::clone(known));
        }
        let lines = file.repository.file_in_commit(&key.0, &key.1).unwrap_or_default();
        let lines = Rc::new(shown_lines(&key.1, lines));
        self.versions.insert(key, Rc::clone(&lines));
        Some(lines)
    }

    fn load_entry(
        &mut self,
        session_row: i64,
        number: u64,
        time: Option<i64>,
    ) -> Result<Option<OriginEntry>, IndexError> {
        if let Some(known) = self.entries.get(&(session_row, number)) {
            return Ok(Some(known.clone()));
        }
        let Some(session) = self.archive.session(session_row)? else { return Ok(None) };
        let index = self.archive.index();
        let entry = index.entries_from(session_row, number, 1)?.into_iter().next();
        let prompt = self.find_prompt(session_row, number)?;
        let instant = time.and_then(|time| jiff::Timestamp::from_millisecond(time).ok());
        let entry = OriginEntry {
            session: session.facts.id.clone(),
            agent: session.facts.agent.clone(),
            title: session.facts.title.clone(),
            number,
            time: instant.map(|instant| Timestamp::from_instant(instant, 3)),
            model: entry.and_then(|entry| entry.model),
            prompt,
        };
        self.entries.insert((session_row, number), entry.clone());
        Ok(Some(entry))
    }

    /// Adds what git-ai and Entire noted. They never make an answer certain; a note that disagrees makes it likely.
    fn add_clues(
        &mut self,
        file: &BlamedFile,
        session_row: Option<i64>,
        origin: &mut LineOrigin,
    ) -> Result<(), IndexError> {
        let line = &origin.line;
        let clues = line.commit.as_ref().and_then(|commit| file.clues.get(commit));
        let Some(clues) = clues else { return Ok(()) };
        let noted = clues.note.as_ref();
        let noted =
            noted.and_then(|note| note.writer_of(&line.original_path, line.original_number));
        if let Some(noted) = noted {
            self.add_note(&noted, session_row, origin)?;
        }
        let Some(session_row) = session_row else { return Ok(()) };
        for id in &clues.checkpoint_sessions {
            if self.archive.index().sessions_with_native_id(id)?.contains(&session_row) {
                origin
                    .evidence
                    .push("the commit's Entire checkpoint names this session".to_owned());
                break;
            }
        }
        Ok(())
    }

    fn add_note(
        &mut self,
        noted: &NotedWriter,
        session_row: Option<i64>,
        origin: &mut LineOrigin,
    ) -> Result<(), IndexError> {
        let sessions = noted.find_sessions(self.archive.index())?;
        let text = match (noted, session_row) {
            (_, Some(row)) if sessions.contains(&row) => "git-ai's note names this session",
            (NotedWriter::Human, _) => "git-ai's note names a person",
            (_, Some(_)) => "git-ai's note names another session",
            (_, None) => return self.add_noted_entry(&sessions, origin),
        };
        origin.evidence.push(text.to_owned());
        if !session_row.is_some_and(|row| sessions.contains(&row)) {
            origin.certainty = origin.certainty.min(OriginCertainty::Likely);
        }
        Ok(())
    }

    /// Names the last edit of the file by the session that a note names.
    fn add_noted_entry(
        &mut self,
        sessions: &[i64],
        origin: &mut LineOrigin,
    ) -> Result<(), IndexError> {
        let EditTimeLimits { until, .. } = self.time_limits(&origin.line);
        let edits = self.archive.recent_edits(&origin.line.original_path)?;
        let is_noted = |edit: &&super::path_edits::PathEdit| {
            sessions.contains(&edit.hit.session_row)
                && edit.hit.time.is_none_or(|time| time <= until)
        };
        if let Some(edit) = edits.iter().rev().find(is_noted) {
            let hit = &edit.hit;
            origin.entry = self.load_entry(hit.session_row, hit.number, hit.time)?;
            origin.certainty = OriginCertainty::Likely;
            origin.evidence.push("git-ai's note names this session".to_owned());
        }
        Ok(())
    }
}

/// The line among the lines of its commit, unless its text has changed since.
fn original_context<'b>(
    file: &'b BlamedFile,
    line: &'b BlamedLine,
    version: &'b [String],
    limits: EditTimeLimits,
) -> Option<LineContext<'b>> {
    let at = line.original_number.checked_sub(1)?;
    let is_same = version.get(at)? == file.lines.get(line.number.checked_sub(1)?)?;
    let paths = [file.path.as_str(), line.original_path.as_str()];
    is_same.then_some(LineContext { lines: version, at, paths, limits })
}

/// Whether a text is only the description of a picture, such as `[image/png, 512 bytes, ...]`.
fn is_picture(text: &str) -> bool {
    text.starts_with("[image/") && text.ends_with(']') && !text.contains('\n')
}
