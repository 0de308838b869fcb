//! Threads of projects: objectives, threads below them, and of each its assets, transcripts and references.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use steno_core::thread::{Asset, Id, IdSource, Relations, Thread, ThreadStore};

use crate::app::WebApp;
use crate::asked::encoded;
use crate::error::WebError;
use crate::library::Library;
use crate::page;
use crate::pages::address;
use crate::render::markdown::Rich;
use crate::render::plain;
use crate::render::plain::clean;

/// The longest asset that is shown.
const LARGEST: u64 = 1 << 20;

/// Which thread of which project.
#[derive(Deserialize)]
pub(crate) struct Named {
    project: PathBuf,
    id: String,
}

/// All projects that have threads.
pub(crate) async fn page(State(app): State<WebApp>) -> Result<Markup, WebError> {
    app.run_blocking(|library| {
        let mut projects = Vec::new();
        for project in projects_with_threads(library)? {
            let store = store(library, &project);
            projects.push((store.objectives()?, store.relations()?, project));
        }
        let body = html! {
            h1 { "Threads" }
            @if projects.is_empty() {
                p.empty { "No project of a kept session has threads. " code { "steno init" } " in a project begins them." }
            }
            @for (objectives, relations, project) in &projects {
                h2 { code { (clean(&project.to_string_lossy())) } }
                ul.tree {
                    @for objective in objectives {
                        li {
                            b { (clean(&objective.title)) } " " span.agent { (objective.status.as_str()) }
                            ul {
                                @for thread in roots(relations, &objective.id) { (branch(project, relations, thread)) }
                            }
                        }
                    }
                }
            }
        };
        Ok(page::shell("Threads", "/threads", &body))
    })
    .await
}

/// Folders of kept sessions that have threads.
fn projects_with_threads(library: &Library) -> Result<BTreeSet<PathBuf>, WebError> {
    let listing = library.listing()?;
    let projects = listing.sessions.iter().filter_map(|one| one.session.project.clone());
    let folders = projects.map(PathBuf::from).filter(|folder| folder.is_absolute());
    let all: BTreeSet<PathBuf> = folders.collect();
    Ok(all.into_iter().filter(|folder| folder.join(".leslie/objectives.json").is_file()).collect())
}

fn store(library: &Library, project: &FilePath) -> ThreadStore {
    ThreadStore::new(project, library.clock.clone(), IdSource::random())
}

/// The threads of an objective that no other of it has begun.
fn roots<'a>(relations: &'a Relations, objective: &Id) -> Vec<&'a Thread> {
    let mine = |thread: &&Thread| thread.objective == *objective;
    let is_root = |thread: &&Thread| {
        let parent = thread.parent_id.as_ref().and_then(|id| relations.threads.get(id));
        parent.is_none_or(|parent| parent.objective != *objective)
    };
    relations.threads.values().filter(mine).filter(is_root).collect()
}

fn branch(project: &FilePath, relations: &Relations, thread: &Thread) -> Markup {
    let is_child = |other: &&Thread| {
        other.parent_id.as_ref() == Some(&thread.id) && other.objective == thread.objective
    };
    let children: Vec<&Thread> = relations.threads.values().filter(is_child).collect();
    html! {
        li {
            a href=(place(project, &thread.id)) { (clean(&thread.title)) } " " span.agent { (thread.status.as_str()) }
            @if !children.is_empty() {
                ul { @for child in children { (branch(project, relations, child)) } }
            }
        }
    }
}

fn place(project: &FilePath, id: &Id) -> String {
    format!("/thread?project={}&id={}", encoded(&project.to_string_lossy()), encoded(id.as_str()))
}

/// One thread.
pub(crate) async fn thread(
    State(app): State<WebApp>,
    Query(named): Query<Named>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let known = projects_with_threads(library)?;
        let unknown = || WebError::Unknown(named.project.display().to_string());
        let project = known.get(&named.project).ok_or_else(unknown)?;
        let store = store(library, project);
        let relations = store.relations()?;
        let thread = store.thread(&named.id)?;
        let (assets, _) = store.artifacts(&named.id)?;
        let body = html! {
            h1 { (clean(&thread.title)) }
            ul.facts {
                li { span.agent { (thread.status.as_str()) } }
                li { code { (clean(thread.id.as_str())) } }
                li { "created " (thread.created_at.in_zone(&library.zone).date_and_clock()) }
                @for tag in thread.tags.iter().flatten() { li { "#" (clean(tag)) } }
            }
            (links(project, &relations, &thread))
            (sessions(library, &thread)?)
            @for asset in &assets { (shown(project, asset)) }
            @if assets.is_empty() { p.empty { "It has no assets yet." } }
        };
        Ok(page::shell(&thread.title, "/threads", &body))
    })
    .await
}

fn links(project: &FilePath, relations: &Relations, thread: &Thread) -> Markup {
    let links = relations.links.get(&thread.id).cloned().unwrap_or_default();
    let all = [
        ("Begins", &links.children),
        ("Refers to", &links.references_to),
        ("Referred to by", &links.referenced_by),
        ("Depends on", &links.depends_on),
    ];
    html! {
        @for (name, ids) in all.iter().filter(|(_, ids)| !ids.is_empty()) {
            p {
                b { (name) ": " }
                @for id in *ids {
                    a href=(place(project, id)) {
                        (relations.threads.get(id).map_or(id.as_str(), |thread| thread.title.as_str()))
                    }
                    " "
                }
            }
        }
    }
}

/// The kept sessions of a thread.
fn sessions(library: &Library, thread: &Thread) -> Result<Markup, WebError> {
    let listing = library.listing()?;
    let own = thread.session_id.as_deref();
    let of_thread = listing.sessions.iter().map(|one| &one.session).filter(|session| {
        session.thread.as_deref() == Some(thread.id.as_str())
            || own.is_some_and(|own| {
                session.id.as_str() == own || session.native_id.as_deref() == Some(own)
            })
    });
    Ok(html! {
        @for session in of_thread {
            p { b { "Session: " } a href=(address(&session.agent, &session.id)) { (crate::heading::title(session)) } }
        }
    })
}

fn shown(project: &FilePath, asset: &Asset) -> Markup {
    let texts = texts(&project.join(&asset.path));
    html! {
        section.card {
            h2 { (asset.kind.as_str()) }
            @if texts.is_empty() { small { "Nothing in it yet." } }
            @for (name, text) in &texts {
                details open[asset.kind.as_str() != "transcript"] {
                    summary { code { (clean(name)) } small { (plain::size(text)) } }
                    .md { (Rich { text, breaks: false }) }
                }
            }
        }
    }
}

/// The text files at a place, or directly in it; no link is followed.
fn texts(path: &FilePath) -> Vec<(String, String)> {
    let is_dir = fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
    let mut files: Vec<PathBuf> = match is_dir {
        true => {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        }
        false => vec![path.to_owned()],
    };
    files.sort();
    let text = |file: &PathBuf| {
        let data = fs::symlink_metadata(file).ok()?;
        let name = file.file_name()?.to_string_lossy().into_owned();
        (data.is_file() && data.len() <= LARGEST).then_some(())?;
        Some((name, fs::read_to_string(file).ok()?))
    };
    files.iter().filter_map(text).collect()
}
