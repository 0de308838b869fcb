//! Tests of the browser without a terminal: they send keys and check the screen.

use jiff::tz::TimeZone;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use steno_model::{Entry, EntryKind, Role, Session, SessionStatus, Transcript};
use steno_store::index::match_lines::MatchLine;
use steno_store::index::{ListedSession, SearchHit};
use unicode_width::UnicodeWidthStr;

use super::draw::{self, TerminalPalette};
use super::search_pane::BrowserHit;
use super::state::{BrowserEffect, BrowserState};
use super::{SessionName, WorkerRequest, WorkerResponse};

mod reading;

/// A browser with a test screen.
struct TestBrowser {
    state: BrowserState,
    terminal: Terminal<TestBackend>,
}

impl TestBrowser {
    fn new(width: u16, height: u16) -> Self {
        let now = "2026-01-05T09:15:32Z".parse().unwrap();
        let mut state = BrowserState::new(TimeZone::UTC, now);
        state.resize((width, height).into());
        Self { state, terminal: Terminal::new(TestBackend::new(width, height)).unwrap() }
    }

    /// Creates a browser with some sessions.
    fn with_sessions(width: u16, height: u16) -> Self {
        let mut browser = Self::new(width, height);
        browser.state.apply_response(WorkerResponse::Listed(Ok(sessions())));
        browser.state.apply_response(WorkerResponse::UpToDate(None));
        browser
    }

    /// Creates a browser with an open session.
    fn reading(width: u16, height: u16, transcript: Transcript) -> Self {
        let mut browser = Self::with_sessions(width, height);
        let Some(BrowserEffect::Request(WorkerRequest::Read(name))) = browser.press(KeyCode::Enter)
        else {
            panic!("Enter opens a session")
        };
        browser.state.apply_response(WorkerResponse::Read(name, Box::new(Ok(transcript))));
        browser
    }

    fn press(&mut self, code: KeyCode) -> Option<BrowserEffect> {
        self.state.handle_key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    /// Presses keys one by one. Returns the effect of the last.
    fn keys(&mut self, letters: &str) -> Option<BrowserEffect> {
        letters.chars().map(|letter| self.press(KeyCode::Char(letter))).last().flatten()
    }

    fn screen(&mut self) -> String {
        let palette = TerminalPalette { has_colours: true };
        self.terminal.draw(|frame| draw::draw_browser(frame, &mut self.state, palette)).unwrap();
        let backend = self.terminal.backend();
        let width = usize::from(backend.buffer().area.width);
        let rows = backend.buffer().content().chunks(width);
        let row = |cells: &[ratatui::buffer::Cell]| {
            // The cell after a wide character is empty.
            let mut text = String::new();
            let mut at = 0;
            while let Some(cell) = cells.get(at) {
                text.push_str(cell.symbol());
                at += cell.symbol().width().max(1);
            }
            text.trim_end().to_owned()
        };
        rows.map(row).collect::<Vec<_>>().join("\n")
    }

    /// Returns the row of the cursor.
    fn at(&mut self) -> String {
        let screen = self.screen();
        screen.lines().find(|row| row.starts_with('❯')).unwrap_or_default().to_owned()
    }
}

fn listed(id: &str, agent: &str, title: &str) -> ListedSession {
    let mut session = Session::new(id.parse().unwrap(), agent);
    session.title = Some(title.to_owned());
    session.project = Some(format!("/code/{id}"));
    session.started = Some("2026-01-04T08:00:00Z".parse().unwrap());
    session.totals.entries = 7;
    ListedSession { session, problem: None }
}

fn sessions() -> Vec<ListedSession> {
    let mut all = vec![
        listed("aaa", "codex", "Fix the login bug"),
        listed("bbb", "claude-code", "日本語のタイトルはとても長いので切られます 👩‍👩‍👧 and goes on"),
        listed("ccc", "claude-code", "Write \x1b[31m tests\nfor login"),
        listed("ddd", "pi", "unreadable"),
    ];
    all[1].session.status = SessionStatus::Running;
    all[3].problem = Some("frame 1: sum differs".to_owned());
    all
}

fn entry(role: Role, kind: EntryKind, content: &str) -> Entry {
    let mut entry = Entry::new(role, kind, content);
    entry.created_at = Some("2026-01-04T08:00:01Z".parse().unwrap());
    entry
}

fn transcript() -> Transcript {
    let mut transcript = Transcript::new(listed("aaa", "codex", "Fix the login bug").session);
    transcript.session.totals.entries = 0;
    transcript.push(entry(Role::User, EntryKind::Text, "Fix the login bug"));
    transcript.push(entry(Role::Assistant, EntryKind::Thinking, "Where is it?\nIn login.rs."));
    let mut call = entry(Role::Assistant, EntryKind::ToolCall, "");
    call.tool_name = Some("Read".to_owned());
    call.tool_input = Some(serde_json::json!({"path": "login.rs", "limit": 20}));
    transcript.push(call);
    let mut result = entry(Role::Tool, EntryKind::ToolResult, "fn login() {\n\tbug();\n}\n");
    result.tool_name = Some("Read".to_owned());
    transcript.push(result);
    transcript.push(entry(Role::System, EntryKind::Compaction, "The story so far."));
    let mut helper = entry(Role::Assistant, EntryKind::Text, "I am a helper.");
    helper.source = "subagent:0123456789abcdef".to_owned();
    transcript.push(helper);
    let failed = entry(Role::System, EntryKind::Error, "529 overloaded");
    transcript.push(failed);
    transcript.push(entry(Role::Assistant, EntryKind::Text, "Done. The bug is gone."));
    transcript
}

#[test]
fn sessions_are_listed() {
    insta::assert_snapshot!(TestBrowser::with_sessions(80, 18).screen(), @r"
     steno  4 sessions
     press / to filter, s to search all text
      01-04 08:00  codex             7  Fix the login bug
    * 01-04 08:00  claude-code       7  日本語のタイトルはとても長いので切られます …
      01-04 08:00  claude-code       7  Write \u{1b}[31m tests for login
    ! 01-04 08:00  pi                7  frame 1: sum differs






    ────────────────────────────────────────────────────────────────────────────────
     Fix the login bug
     codex · aaa · completed
     2026-01-04 08:00:00 · 7 entries
     /code/aaa
     Enter open  / filter  s search  r resume  e export  ? help  q quit
    ");
}

#[test]
fn little_room_shows_what_matters_most() {
    insta::assert_snapshot!(TestBrowser::with_sessions(40, 6).screen(), @r"
     steno  4 sessions
     press / to filter, s to search all text
      01-04 08:00  Fix the login bug
    * 01-04 08:00  日本語のタイトルはとても…
      01-04 08:00  Write \u{1b}[31m tests f…
     Enter open  / filter  ? help  q quit
    ");
}

#[test]
fn the_filter_follows_each_letter() {
    let mut browser = TestBrowser::with_sessions(80, 18);
    browser.keys("/LOGIN");
    assert_eq!(browser.state.sessions.counts(), (2, 4));
    browser.keys(" wri");
    assert_eq!(browser.state.sessions.counts(), (1, 4));
    let Some(BrowserEffect::Request(WorkerRequest::Read(name))) = browser.press(KeyCode::Enter)
    else {
        panic!()
    };
    assert_eq!(name.id.as_str(), "ccc");
    // Each Esc goes one step back: out of the pending open, the filter, the program.
    assert_eq!(browser.press(KeyCode::Esc), None);
    assert_eq!(browser.press(KeyCode::Esc), None);
    assert_eq!(browser.state.sessions.counts(), (4, 4));
    assert_eq!(browser.press(KeyCode::Esc), Some(BrowserEffect::Quit));
}

#[test]
fn the_keys_of_the_footer_filter_and_search_also_beside_hits() {
    let mut browser = TestBrowser::with_sessions(80, 18);
    browser.keys("szzz");
    browser.press(KeyCode::Esc);
    browser.keys("/login");
    assert_eq!(browser.state.sessions.filter.text(), "login");
    assert_eq!(browser.state.search.input.text(), "zzz");
    assert_eq!(browser.state.sessions.counts(), (2, 4));
    assert!(browser.screen().contains("2 of 4 sessions"), "{}", browser.screen());
}

#[test]
fn keys_are_letters_while_they_are_typed() {
    let mut browser = TestBrowser::with_sessions(80, 18);
    assert_eq!(browser.keys("/q?re"), None);
    assert_eq!(browser.state.sessions.filter.text(), "q?re");
    assert!(!browser.state.is_help_shown);
    let quit = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(browser.state.handle_key(quit), Some(BrowserEffect::Quit));
}

#[test]
fn the_chosen_session_stays_chosen_when_others_come() {
    let mut browser = TestBrowser::with_sessions(80, 18);
    browser.keys("jj");
    let mut more = sessions();
    more.insert(0, listed("eee", "codex", "New"));
    browser.state.apply_response(WorkerResponse::Listed(Ok(more)));
    assert_eq!(browser.keys("r"), Some(BrowserEffect::Resume(name("claude-code", "ccc"))));
    assert_eq!(
        browser.keys("e"),
        Some(BrowserEffect::Request(WorkerRequest::Export(name("claude-code", "ccc"))))
    );
    assert!(browser.state.is_waiting());
    browser.state.apply_response(WorkerResponse::Exported(Ok("/tmp/ccc.md".into())));
    assert!(browser.screen().ends_with(" written: /tmp/ccc.md"));
}

fn name(agent: &str, id: &str) -> SessionName {
    SessionName { agent: agent.to_owned(), id: id.parse().unwrap() }
}

fn found() -> Vec<BrowserHit> {
    let hit = SearchHit {
        session: "bbb".parse().unwrap(),
        agent: "claude-code".to_owned(),
        project: None,
        title: Some("Titles".to_owned()),
        number: 3,
        time: Some("2026-01-04T08:00:01Z".parse().unwrap()),
        role: "tool".to_owned(),
        kind: EntryKind::ToolResult,
        tool: Some("Read".to_owned()),
        model: None,
        source: "primary".to_owned(),
        copies: 2,
        text: String::new(),
    };
    let long = format!("{}the bug() itself", "x ".repeat(80));
    let at = long.find("bug").unwrap();
    let line = MatchLine { number: 2, text: long, marks: Vec::from_iter(Some(at..at + 3)) };
    let near = MatchLine { number: 1, text: "    fn login() {".to_owned(), marks: vec![] };
    vec![BrowserHit { hit, lines: vec![near, line] }]
}

#[test]
fn hits_show_what_matches_however_long_the_line_is() {
    let mut browser = TestBrowser::with_sessions(80, 18);
    let asked = browser.keys("sbug");
    assert_eq!(asked, Some(BrowserEffect::Request(WorkerRequest::Search(4, "bug".to_owned()))));
    // A response to an older query is ignored.
    browser.state.apply_response(WorkerResponse::SearchResult(3, Ok(vec![])));
    assert!(browser.state.search.is_waiting());
    browser.state.apply_response(WorkerResponse::SearchResult(4, Ok(found())));
    insta::assert_snapshot!(browser.screen(), @"
     steno  1 hit
     Search: bug
      01-04 08:00 claude-code tool result Read (+2) · Titles
        … x x x x x x x the bug() itself








    ────────────────────────────────────────────────────────────────────────────────
         fn login() {
     … x x x x x x x the bug() itself


     Enter open  ↑↓ choose  Tab sessions  Esc done
    ");
    let Some(BrowserEffect::Request(WorkerRequest::Read(name))) = browser.press(KeyCode::Enter)
    else {
        panic!()
    };
    browser.state.apply_response(WorkerResponse::Read(name, Box::new(Ok(transcript()))));
    assert_eq!(browser.at(), "❯     bug();");
    // Newly indexed sessions may match too.
    let again = browser.state.apply_response(WorkerResponse::UpToDate(None));
    assert_eq!(again, Some(BrowserEffect::Request(WorkerRequest::Search(5, "bug".to_owned()))));
}

#[test]
fn an_invalid_query_shows_its_error() {
    let mut browser = TestBrowser::with_sessions(60, 18);
    browser.keys("s-");
    browser.state.apply_response(WorkerResponse::SearchResult(
        2,
        Err("nothing to search for: \"-\"".to_owned()),
    ));
    assert!(browser.screen().contains("nothing to search for"));
}

#[test]
fn no_size_of_the_screen_breaks_it() {
    for (width, height) in
        [(1, 1), (2, 2), (3, 3), (5, 4), (9, 5), (20, 8), (79, 15), (80, 16), (200, 60)]
    {
        let mut browser = TestBrowser::reading(80, 24, transcript());
        browser.terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        browser.state.resize((width, height).into());
        browser.screen();
        for keys in ["o", "G", "x", "/日本語 is long", "\t", "q"] {
            browser.keys(keys);
            browser.screen();
            browser.press(KeyCode::Esc);
        }
        browser.keys("?");
        browser.screen();
        browser.keys(" s👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧");
        browser.state.apply_response(WorkerResponse::SearchResult(99, Ok(found())));
        browser.screen();
        browser.state.notice = Some("long words ".repeat(30));
        browser.screen();
    }
}

#[test]
fn a_mistake_behind_the_screen_does_not_end_the_browser() {
    let mut browser = TestBrowser::with_sessions(80, 18);
    browser.press(KeyCode::Enter);
    assert!(browser.screen().ends_with(" reading …"));
    browser.state.apply_response(WorkerResponse::Failed("bug in steno: index 7".to_owned()));
    assert!(!browser.state.is_waiting());
    assert!(browser.screen().ends_with(" bug in steno: index 7"));
}

#[test]
fn without_colours_there_are_none() {
    let mut browser = TestBrowser::reading(60, 24, transcript());
    let palette = TerminalPalette { has_colours: false };
    browser.terminal.draw(|frame| draw::draw_browser(frame, &mut browser.state, palette)).unwrap();
    let reset = ratatui::style::Color::Reset;
    let cells = browser.terminal.backend().buffer().content();
    assert!(cells.iter().all(|cell| cell.fg == reset && cell.bg == reset));
}

#[test]
fn a_wide_screen_shows_the_selected_session_beside_the_list() {
    let mut browser = TestBrowser::new(150, 24);
    let effect = browser.state.apply_response(WorkerResponse::Listed(Ok(sessions())));
    let Some(BrowserEffect::Request(WorkerRequest::Preview(first))) = effect else {
        panic!("the first session is previewed")
    };
    assert_eq!(first.id.as_str(), "aaa");
    assert!(browser.screen().contains("│ reading …"));
    assert!(browser.state.is_waiting());
    let Some(BrowserEffect::Request(WorkerRequest::Preview(second))) = browser.keys("j") else {
        panic!("the next session is previewed")
    };
    let mut transcript = Transcript::new(sessions()[0].session.clone());
    transcript.push(entry(Role::User, EntryKind::Text, "Where is the bug?"));
    let answer = |name: &SessionName| {
        WorkerResponse::Preview(name.clone(), Box::new(Ok(transcript.clone())))
    };
    browser.state.apply_response(answer(&first));
    assert!(browser.screen().contains("│ reading …"), "another session is selected by now");
    browser.state.apply_response(answer(&second));
    let screen = browser.screen();
    assert!(screen.contains("Where is the bug?") && !screen.contains("reading …"), "{screen}");
    assert_eq!(browser.keys("?x"), None, "nothing is read twice");
    assert_eq!(TestBrowser::with_sessions(100, 24).keys("j"), None, "too narrow");
}

#[test]
fn a_session_that_cannot_be_read_has_no_preview() {
    let mut browser = TestBrowser::new(150, 24);
    browser.state.apply_response(WorkerResponse::Listed(Ok(sessions())));
    assert_eq!(browser.keys("G"), None);
    assert!(browser.screen().contains("│ cannot be read: frame 1: sum differs"));
}
