//! The pages of threads: objectives, their threads, and the assets, transcripts and references of each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path as FilePath, PathBuf};

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;
use steno_seeds::thread::{
    IdSource, LeslieId, Objective, Thread, ThreadAsset, ThreadRelations, ThreadStore,
};
use steno_store::view::markdown::capitalize_first;

use crate::addresses::{session_address, short_path};
use crate::app::WebApp;
use crate::error::WebError;
use crate::filter_query::encode_query_text;
use crate::heading;
use crate::library::SessionLibrary;
use crate::page::PageHead;
use crate::render::markdown::SafeMarkdown;
use crate::render::plain;
use crate::render::plain::clean_text;
use crate::units::count_of;
use crate::viewer::PageViewer;

/// The largest asset to show, in bytes.
const MAX_ASSET_BYTES: u64 = 1 << 20;

/// A project and the id of one of its threads.
#[derive(Deserialize)]
pub(crate) struct ThreadQuery {
    project: PathBuf,
    id: String,
}

/// The page of all projects that have threads.
pub(crate) async fn threads_page(app: WebApp, viewer: PageViewer) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let mut projects = Vec::new();
        for project in projects_with_threads(library)? {
            let store = thread_store(library, &project);
            projects.push((store.list_objectives()?, store.load_relations()?, project));
        }
        let body = html! {
            h1 { "Threads" }
            @if projects.is_empty() {
                .empty {
                    p { b { "No project has threads yet" } }
                    p { "A thread is one line of work with a plan, notes and its sessions. Run " code { "steno init" } " in a project, then " code { "steno objective create \"A goal\"" } " and " code { "steno spawn \"What to do\"" } "." }
                }
            } @else {
                p.hint { "Lines of work in your projects. Each has a folder for its plan, notes and transcripts." }
            }
            @for (objectives, relations, project) in &projects {
                h2 title=(clean_text(&project.to_string_lossy())) { (clean_text(short_path(&project.to_string_lossy()))) }
                @if objectives.is_empty() { p.hint { "No objectives yet. Run " code { "steno objective create \"A goal\"" } " in this project." } }
                ul.tree {
                    @for objective in objectives {
                        li { (ThreadTreeView { project, relations, viewer: &viewer }.objective_branch(objective)) }
                    }
                }
            }
        };
        Ok(PageHead::new("Threads", "/threads").viewed_by(&viewer).with_body(&body))
    })
    .await
}

/// The project folders of all sessions that have threads.
fn projects_with_threads(library: &SessionLibrary) -> Result<BTreeSet<PathBuf>, WebError> {
    // The folders of a team's projects are on other machines.
    if library.serves_team() {
        return Ok(BTreeSet::new());
    }
    let listing = library.session_listing()?;
    let projects = listing.sessions.iter().filter_map(|one| one.session.project.clone());
    let folders = projects.map(PathBuf::from).filter(|folder| folder.is_absolute());
    let all: BTreeSet<PathBuf> = folders.collect();
    Ok(all.into_iter().filter(|folder| folder.join(".leslie/objectives.json").is_file()).collect())
}

fn thread_store(library: &SessionLibrary, project: &FilePath) -> ThreadStore {
    ThreadStore::new(project, library.clock.clone(), IdSource::random())
}

/// The threads of an objective without a parent in the same objective.
fn root_threads<'a>(relations: &'a ThreadRelations, objective: &LeslieId) -> Vec<&'a Thread> {
    let mine = |thread: &&Thread| thread.objective == *objective;
    let is_root = |thread: &&Thread| {
        let parent = thread.parent_id.as_ref().and_then(|id| relations.threads.get(id));
        parent.is_none_or(|parent| parent.objective != *objective)
    };
    relations.threads.values().filter(mine).filter(is_root).collect()
}

/// What is needed to show the threads of a project.
struct ThreadTreeView<'a> {
    project: &'a FilePath,
    relations: &'a ThreadRelations,
    viewer: &'a PageViewer,
}

impl ThreadTreeView<'_> {
    fn objective_branch(&self, objective: &Objective) -> Markup {
        let roots = root_threads(self.relations, &objective.id);
        html! {
            b { (clean_text(&objective.title)) }
            span.agent title="Status of the objective" { (objective.status.as_str()) }
            small { (count_of(objective.thread_ids.len() as u64, "thread")) }
            @if roots.is_empty() { p.hint { "No threads yet. Run " code { "steno spawn \"What to do\" --objective " (clean_text(objective.id.as_str())) } " in this project." } }
            ul { @for thread in roots { (self.thread_branch(thread)) } }
        }
    }

    fn thread_branch(&self, thread: &Thread) -> Markup {
        let is_child = |other: &&Thread| {
            other.parent_id.as_ref() == Some(&thread.id) && other.objective == thread.objective
        };
        let children: Vec<&Thread> = self.relations.threads.values().filter(is_child).collect();
        html! {
            li {
                a href=(thread_address(self.project, &thread.id)) { (clean_text(&thread.title)) }
                span.agent title="Status of the thread" { (thread.status.as_str()) }
                small title="When the thread last changed" { "changed " (self.viewer.format_time(thread.updated_at)) }
                @if !children.is_empty() { ul { @for child in children { (self.thread_branch(child)) } } }
            }
        }
    }
}

fn thread_address(project: &FilePath, id: &LeslieId) -> String {
    format!(
        "/thread?project={}&id={}",
        encode_query_text(&project.to_string_lossy()),
        encode_query_text(id.as_str())
    )
}

/// The page of one thread.
pub(crate) async fn thread_page(
    app: WebApp,
    viewer: PageViewer,
    Query(named): Query<ThreadQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let known = projects_with_threads(library)?;
        let unknown = || WebError::NotFound(named.project.display().to_string());
        let project = known.get(&named.project).ok_or_else(unknown)?;
        let store = thread_store(library, project);
        let relations = store.load_relations()?;
        let thread = store.thread(&named.id)?;
        let (assets, _) = store.assets_and_warnings(&named.id)?;
        let body = html! {
            h1 { (clean_text(&thread.title)) }
            ul.facts {
                li title="Status of the thread" { span.agent { (thread.status.as_str()) } }
                li title="Id, for commands such as steno resume" { code { (clean_text(thread.id.as_str())) } }
                li title="Project folder" { code { (clean_text(&project.to_string_lossy())) } }
                li title="When the thread was started" { "started " (viewer.format_time(thread.created_at)) }
                @for tag in thread.tags.iter().flatten() { li { "#" (clean_text(tag)) } }
            }
            (thread_links(project, &relations, &thread))
            (thread_sessions(library, &thread)?)
            @for asset in &assets { (asset_card(project, asset)) }
            @if assets.is_empty() {
                .empty { p { b { "No files yet" } } p { "The plan, notes and transcripts of this thread appear here." } }
            }
        };
        Ok(PageHead::new(&thread.title, "/threads").viewed_by(&viewer).with_body(&body))
    })
    .await
}

fn thread_links(project: &FilePath, relations: &ThreadRelations, thread: &Thread) -> Markup {
    let links = relations.links.get(&thread.id).cloned().unwrap_or_default();
    let all = [
        ("Started from here", &links.children),
        ("References", &links.references_to),
        ("Referenced by", &links.referenced_by),
        ("Depends on", &links.depends_on),
    ];
    html! {
        @for (name, ids) in all.iter().filter(|(_, ids)| !ids.is_empty()) {
            p {
                b { (name) ": " }
                @for (at, id) in ids.iter().enumerate() {
                    @if at > 0 { ", " }
                    a href=(thread_address(project, id)) {
                        (clean_text(relations.threads.get(id).map_or(id.as_str(), |thread| thread.title.as_str())))
                    }
                }
            }
        }
    }
}

/// The sessions of a thread.
fn thread_sessions(library: &SessionLibrary, thread: &Thread) -> Result<Markup, WebError> {
    let listing = library.session_listing()?;
    let own = thread.session_id.as_deref();
    let of_thread = listing.sessions.iter().map(|one| &one.session).filter(|session| {
        session.thread.as_deref() == Some(thread.id.as_str())
            || own.is_some_and(|own| {
                session.id.as_str() == own || session.native_id.as_deref() == Some(own)
            })
    });
    Ok(html! {
        @for session in of_thread {
            p {
                b { "Session: " }
                a href=(session_address(&session.agent, &session.id)) { (heading::session_title(session)) }
            }
        }
    })
}

fn asset_card(project: &FilePath, asset: &ThreadAsset) -> Markup {
    let texts = read_texts(&project.join(&asset.path));
    html! {
        section.card {
            h2 { (capitalize_first(asset.kind.as_str())) }
            @if texts.is_empty() { p.hint { "Nothing has been written yet." } }
            @for (name, text) in &texts {
                details open[asset.kind.as_str() != "transcript"] {
                    summary { code { (clean_text(name)) } small { (plain::size_label(text)) } }
                    .md { (SafeMarkdown { text, breaks: false }) }
                }
            }
        }
    }
}

/// The text files at a path, or directly in a folder. Links are not followed.
fn read_texts(path: &FilePath) -> Vec<(String, String)> {
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
        (data.is_file() && data.len() <= MAX_ASSET_BYTES).then_some(())?;
        Some((name, fs::read_to_string(file).ok()?))
    };
    files.iter().filter_map(text).collect()
}
