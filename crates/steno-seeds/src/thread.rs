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
mod delivery;
mod draft;
mod error;
mod fields;
mod file_copy;
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
mod vocabulary;
mod worker;

pub use assets::{AssetKind, ThreadAsset};
pub use delivery::{UndeliveredMessages, WaitingInjection};
pub use error::{StoreProblem, ThreadError, ThreadWarning};
pub use fields::InvalidField;
pub use id::{IdSource, LeslieId, LeslieIdError};
pub use lifecycle::{StatusChange, ThreadInjection, ThreadTransfer};
pub use links::ThreadLinks;
pub use merge::{MergeOutcome, MergeRequest};
pub use objectives::{Objective, ObjectiveList};
pub use reference::{AddedReference, ReferenceRequest};
pub use relations::{Thread, ThreadOperation, ThreadRelations};
pub use spawn::{SpawnRequest, SpawnedThread};
pub use store::ThreadStore;
pub use vocabulary::{
    ConflictStrategy, Executor, Inheritance, LifecycleAction, ObjectiveStatus, Operator,
    ReferenceBinding, ThreadStatus, TransferDirection, WordError,
};
pub use worker::{ThreadWorker, WorkerState};

#[cfg(test)]
mod tests;
