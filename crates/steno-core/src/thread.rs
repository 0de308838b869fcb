//! Threads: the units of work of a project, with their objectives and assets, as leslie stores them in `.leslie/`.
//!
//! # Crashes
//! A change of the two stores and of the threads' folders is staged in a separate folder, committed by one rename,
//! and then moved into place. After a crash, the next process finishes a committed change. The stores never disagree,
//! and no file of a thread is lost: a file that has to make room moves to `.meta/replaced`.
//!
//! # Locking
//! One lock covers both stores, and leslie's own processes respect it. Reading takes no lock. A process that works in
//! a thread holds that thread's lock ([`ThreadWorker`]) from the first prompt to the last transcript.

mod agent;
mod assets;
mod commit;
mod context;
mod copy;
mod draft;
mod error;
mod fields;
pub mod guide;
mod id;
mod lifecycle;
mod links;
mod lock;
mod merge;
mod objectives;
mod reference;
mod relations;
mod spawn;
mod store;
mod waiting;
mod words;
mod worker;

pub use assets::{Asset, AssetKind};
pub use error::{StoreProblem, ThreadError, Warning};
pub use fields::Invalid;
pub use id::{Id, IdError, IdSource};
pub use lifecycle::{Inject, Lifecycle, Transfer};
pub use links::Links;
pub use merge::{Merge, Merged};
pub use objectives::{Objective, Objectives};
pub use reference::{Reference, Referenced};
pub use relations::{Operation, Relations, Thread};
pub use spawn::{Spawn, Spawned};
pub use store::ThreadStore;
pub use waiting::{Injection, Waiting};
pub use words::{
    Action, Binding, ConflictStrategy, Direction, Executor, Inherit, ObjectiveStatus, Operator,
    Status, WordError,
};
pub use worker::{ThreadWorker, WorkerState};

#[cfg(test)]
mod tests;
