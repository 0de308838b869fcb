//! Real session files of many agents, written as sessions of each agent that can continue them, and read back.
//!
//! The files are not part of the repository: `STENO_FIXTURES` names the folder that holds them. Without it this test only
//! says so.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use steno_agents::agent::continuation::conversation::{ContinuedConversation, NoticeHandling};
use steno_agents::agent::continuation::image_segments::ContinuedImage;
use steno_agents::agent::continuation::{ContinuationRequest, check_files};
use steno_agents::agent::user_folders::UserFolders;
use steno_agents::reader::FoundSession;
use steno_agents::registry;
use steno_store::format;
use steno_store::view::pictures::SessionPictures;

#[test]
fn every_session_reads_back_equal_in_every_agent() {
    let Some(fixtures) = std::env::var_os("STENO_FIXTURES") else {
        eprintln!("STENO_FIXTURES is not set: nothing is continued");
        return;
    };
    let found = format::find_sessions(&PathBuf::from(fixtures)).unwrap();
    let (mut copies, mut calls, mut failures) = (0, 0, Vec::new());
    for session in &found {
        let Ok(transcript) = session.read_transcript() else { continue };
        let conversation =
            ContinuedConversation::from_entries(&transcript.entries, NoticeHandling::LeftOut);
        let pictures =
            SessionPictures::find_in_bundle(&session.bundle, &transcript.entries).unwrap();
        calls += conversation.counts().calls;
        failures.extend(copy_to_all(session, &conversation, &pictures));
        copies += 1;
    }
    println!("{copies} sessions with {calls} calls");
    assert!(copies > 100 && calls > 1000, "{copies} {calls}");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}

/// Writes a session for each agent, and returns what reads differently.
fn copy_to_all(
    session: &FoundSession,
    conversation: &ContinuedConversation,
    pictures: &SessionPictures,
) -> Vec<String> {
    let user = UserFolders { home: Path::new("/home/u"), variable: &|_| None };
    let images = |hash: &str| {
        let picture = pictures.get(hash)?;
        let media_type = picture.media_type.to_owned();
        Some(ContinuedImage { media_type, base64: picture.base64.clone() })
    };
    let request = ContinuationRequest {
        conversation,
        notice: "<continued_session agent=\"x\" session=\"y\">\n</continued_session>",
        title: "Title",
        origin_agent: "x",
        images: &images,
        folder: Path::new("/p/shop"),
        branch: None,
        user: &user,
        version: "1.0.0",
        id: "01a1e4b5-ea58-79c2-b50c-54452306d4f5".parse().unwrap(),
        now: "2026-11-16T10:00:00Z".parse().unwrap(),
    };
    let mut failures = Vec::new();
    for agent in registry::all_agents() {
        let Some(rule) = &agent.continuation else { continue };
        let files = (rule.write)(&request).unwrap();
        if let Err(error) = check_files(agent.reader, &files, conversation) {
            let root = session.bundle.root.display();
            failures.push(format!("{root} in {}: {error}", agent.name()));
        }
    }
    failures
}
