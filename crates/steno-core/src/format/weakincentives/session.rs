//! A session of slices: events come in, reducers turn them into items, subscribers hear of them.
//!
//! Unlike upstream's, it settles a slice's policy before the slice exists, never rewrites a LOG
//! slice, and returns the errors of its reducers.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use uuid::Uuid;

use super::reducers::append_all;
use super::slice::{Change, Policy, Slice, SliceError, SliceFactoryConfig, SliceItem, View};
use crate::json::Object;
use crate::timestamp::Clock;

type Reducer = Box<dyn Fn(&Slice, &dyn Any) -> Result<Change<Object>, SliceError> + Send>;
type Subscriber = Box<dyn FnMut(&dyn Any) + Send>;

/// Slices of items, by type.
pub struct SliceSession {
    id: Uuid,
    clock: Clock,
    config: SliceFactoryConfig,
    pub(super) policies: BTreeMap<&'static str, Policy>,
    slices: BTreeMap<&'static str, Slice>,
    reducers: HashMap<TypeId, Vec<(&'static str, Reducer)>>,
    subscribers: HashMap<TypeId, Vec<Subscriber>>,
    /// Whether events become entries already.
    pub(super) is_capturing: bool,
}

/// An event that not every reducer could take in.
#[derive(Debug, thiserror::Error)]
#[error("could not take in {event}: {}", reasons(.errors))]
pub struct DispatchError {
    /// The type of the event.
    pub event: &'static str,
    /// What went wrong, one per reducer.
    pub errors: Vec<SliceError>,
}

impl SliceSession {
    /// A session without slices.
    pub fn new(id: Uuid, clock: Clock, config: SliceFactoryConfig) -> Self {
        Self {
            id,
            clock,
            config,
            policies: BTreeMap::new(),
            slices: BTreeMap::new(),
            reducers: HashMap::new(),
            subscribers: HashMap::new(),
            is_capturing: false,
        }
    }

    /// The session's id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Where its times come from.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Says what may happen to the items of type `T`; only before their slice exists.
    pub fn set_policy<T: SliceItem>(&mut self, policy: Policy) -> Result<(), SliceError> {
        match self.slices.get(T::TYPE_ID) {
            Some(slice) if slice.policy() != policy => Err(SliceError::PolicySettled(T::TYPE_ID)),
            _ => {
                self.policies.insert(T::TYPE_ID, policy);
                Ok(())
            }
        }
    }

    /// Lets events of type `E` change the slice of type `T`, in order of registration.
    pub fn register<E: SliceItem, T: SliceItem>(
        &mut self,
        policy: Policy,
        reducer: impl Fn(&View<'_, T>, &E) -> Result<Change<T>, SliceError> + Send + 'static,
    ) -> Result<(), SliceError> {
        self.set_policy::<T>(policy)?;
        let reducers = self.reducers.entry(TypeId::of::<E>()).or_default();
        reducers.push((T::TYPE_ID, erased(reducer)));
        Ok(())
    }

    /// Tells `hear` of every event of type `E`, after the reducers.
    pub fn subscribe<E: SliceItem>(&mut self, mut hear: impl FnMut(&E) + Send + 'static) {
        let subscriber: Subscriber = Box::new(move |event| {
            if let Some(event) = event.downcast_ref() {
                hear(event);
            }
        });
        let subscribers = self.subscribers.entry(TypeId::of::<E>()).or_default();
        subscribers.push(subscriber);
    }

    /// Takes in an event: every reducer for its type, else it is appended to its own slice; then
    /// the subscribers.
    ///
    /// A reducer that fails keeps neither the others nor the subscribers from the event.
    pub fn dispatch<E: SliceItem>(&mut self, mut event: E) -> Result<(), DispatchError> {
        event.identify();
        let errors = match self.reducers.remove(&TypeId::of::<E>()) {
            None => self.reduce::<E>(&[(E::TYPE_ID, erased(append_all::<E>))], &event),
            Some(reducers) => {
                let errors = self.reduce::<E>(&reducers, &event);
                self.reducers.insert(TypeId::of::<E>(), reducers);
                errors
            }
        };
        let subscribers = self.subscribers.get_mut(&TypeId::of::<E>());
        for subscriber in subscribers.into_iter().flatten() {
            subscriber(&event);
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(DispatchError { event: E::TYPE_ID, errors })
    }

    /// The items of type `T`.
    pub fn query<T: SliceItem>(&mut self) -> View<'_, T> {
        View::new(self.slice(T::TYPE_ID, T::POLICY))
    }

    /// Puts items in place of those of type `T`; a LOG slice refuses.
    pub fn replace<T: SliceItem>(&mut self, items: &[T]) -> Result<(), SliceError> {
        let items = items.iter().cloned().map(identified).collect();
        self.slice(T::TYPE_ID, T::POLICY).apply(Change::Replace(items))
    }

    /// Gives the slice of type `T` its first items, past all reducers. A STATE slice loses what it had; a LOG slice
    /// that has items refuses.
    pub fn seed<T: SliceItem>(&mut self, items: &[T]) -> Result<(), SliceError> {
        let has_items = !self.query::<T>().is_empty()?;
        let slice = self.slice(T::TYPE_ID, T::POLICY);
        if slice.policy() == Policy::State {
            return self.replace(items);
        }
        if has_items {
            slice.refuse_log("seed")?;
        }
        slice.apply(Change::Append(items.iter().cloned().map(identified).collect()))
    }

    /// Takes away the items of type `T` for which `unwanted` holds, and returns how many; a LOG slice refuses.
    pub fn clear_where<T: SliceItem>(
        &mut self,
        mut unwanted: impl FnMut(&T) -> bool,
    ) -> Result<usize, SliceError> {
        self.slice(T::TYPE_ID, T::POLICY).refuse_log("clear")?;
        let mut items = self.query::<T>().all()?;
        let count = items.len();
        items.retain(|item| !unwanted(item));
        if items.len() < count {
            self.replace(&items)?;
        }
        Ok(count - items.len())
    }

    /// Takes away all items of type `T`; a LOG slice refuses.
    pub fn clear<T: SliceItem>(&mut self) -> Result<(), SliceError> {
        self.slice(T::TYPE_ID, T::POLICY).apply(Change::Clear)
    }

    /// Takes away all items of all types; refuses, and changes nothing, if one of them is a LOG
    /// slice.
    pub fn reset(&mut self) -> Result<(), SliceError> {
        for slice in self.slices.values() {
            slice.refuse_log("reset")?;
        }
        let mut slices = self.slices.values_mut();
        slices.try_for_each(|slice| slice.apply(Change::Clear))
    }

    /// The slice of a type; made now if it is not there, under the policy that holds now.
    pub(super) fn slice(&mut self, type_id: &'static str, default: Policy) -> &mut Slice {
        let policy = *self.policies.entry(type_id).or_insert(default);
        self.slices.entry(type_id).or_insert_with(|| Slice::new(type_id, policy, &self.config))
    }

    /// The items of a type as JSON, also those in a file that nobody has asked for yet.
    pub(super) fn objects(
        &self,
        type_id: &'static str,
        policy: Policy,
    ) -> Result<Vec<Object>, SliceError> {
        match self.slices.get(type_id) {
            Some(slice) => slice.objects(),
            None => Slice::new(type_id, policy, &self.config).objects(),
        }
    }

    fn reduce<E: SliceItem>(
        &mut self,
        reducers: &[(&'static str, Reducer)],
        event: &E,
    ) -> Vec<SliceError> {
        let mut errors = Vec::new();
        for (type_id, reducer) in reducers {
            let slice = self.slice(type_id, E::POLICY);
            let change = reducer(slice, event);
            errors.extend(change.and_then(|change| slice.apply(change)).err());
        }
        errors
    }
}

impl fmt::Debug for SliceSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SliceSession")
            .field("id", &self.id)
            .field("slices", &self.slices)
            .finish_non_exhaustive()
    }
}

/// The item as JSON, with an id of its own.
fn identified<T: SliceItem>(mut item: T) -> Object {
    item.identify();
    item.to_json()
}

fn reasons(errors: &[SliceError]) -> String {
    let reasons: Vec<_> = errors.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}

fn erased<E: SliceItem, T: SliceItem>(
    reducer: impl Fn(&View<'_, T>, &E) -> Result<Change<T>, SliceError> + Send + 'static,
) -> Reducer {
    let to_json = |items: Vec<T>| items.into_iter().map(identified).collect();
    Box::new(move |slice, event| {
        let event = event.downcast_ref().expect("routed by the event's type");
        Ok(match reducer(&View::new(slice), event)? {
            Change::Append(items) => Change::Append(to_json(items)),
            Change::Replace(items) => Change::Replace(to_json(items)),
            Change::Clear => Change::Clear,
        })
    })
}

#[cfg(test)]
mod tests;
