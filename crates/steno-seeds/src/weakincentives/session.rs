//! A session of slices: reducers turn events into items, and subscribers are notified.
//!
//! Unlike upstream's, it fixes a slice's policy before the slice exists, never rewrites a LOG slice, and returns the
//! errors of its reducers.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use uuid::Uuid;

use super::reducers::append_all;
use super::slice::{
    Slice, SliceChange, SliceError, SliceFactoryConfig, SliceItem, SlicePolicy, SliceView,
};
use steno_model::json::Object;
use steno_model::timestamp::Clock;

type ErasedReducer =
    Box<dyn Fn(&Slice, &dyn Any) -> Result<SliceChange<Object>, SliceError> + Send>;
type EventSubscriber = Box<dyn FnMut(&dyn Any) + Send>;

/// Slices of items, by type.
pub struct SliceSession {
    id: Uuid,
    clock: Clock,
    config: SliceFactoryConfig,
    pub(super) policies: BTreeMap<&'static str, SlicePolicy>,
    slices: BTreeMap<&'static str, Slice>,
    reducers: HashMap<TypeId, Vec<(&'static str, ErasedReducer)>>,
    subscribers: HashMap<TypeId, Vec<EventSubscriber>>,
    /// Whether events are captured as entries already.
    pub(super) is_capturing: bool,
}

/// An event that at least one reducer failed to process.
#[derive(Debug, thiserror::Error)]
#[error("could not dispatch {event}: {}", reasons(.errors))]
pub struct DispatchError {
    /// The type of the event.
    pub event: &'static str,
    /// The errors, one per failed reducer.
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

    /// The clock for its times.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Sets the policy for items of type `T`. Fails if their slice exists already.
    pub fn set_policy<T: SliceItem>(&mut self, policy: SlicePolicy) -> Result<(), SliceError> {
        match self.slices.get(T::TYPE_ID) {
            Some(slice) if slice.policy() != policy => Err(SliceError::PolicySettled(T::TYPE_ID)),
            _ => {
                self.policies.insert(T::TYPE_ID, policy);
                Ok(())
            }
        }
    }

    /// Registers a reducer by which events of type `E` change the slice of type `T`. Reducers run in the order of
    /// registration.
    pub fn register_reducer<E: SliceItem, T: SliceItem>(
        &mut self,
        policy: SlicePolicy,
        reducer: impl Fn(&SliceView<'_, T>, &E) -> Result<SliceChange<T>, SliceError> + Send + 'static,
    ) -> Result<(), SliceError> {
        self.set_policy::<T>(policy)?;
        let reducers = self.reducers.entry(TypeId::of::<E>()).or_default();
        reducers.push((T::TYPE_ID, erase_reducer(reducer)));
        Ok(())
    }

    /// Calls `callback` for every event of type `E`, after the reducers.
    pub fn subscribe<E: SliceItem>(&mut self, mut callback: impl FnMut(&E) + Send + 'static) {
        let subscriber: EventSubscriber = Box::new(move |event| {
            if let Some(event) = event.downcast_ref() {
                callback(event);
            }
        });
        let subscribers = self.subscribers.entry(TypeId::of::<E>()).or_default();
        subscribers.push(subscriber);
    }

    /// Dispatches an event to all reducers for its type, or appends it to its own slice if there are none; then
    /// notifies the subscribers.
    ///
    /// If a reducer fails, the other reducers and the subscribers still receive the event.
    pub fn dispatch<E: SliceItem>(&mut self, mut event: E) -> Result<(), DispatchError> {
        event.identify();
        let errors = match self.reducers.remove(&TypeId::of::<E>()) {
            None => self.run_reducers::<E>(&[(E::TYPE_ID, erase_reducer(append_all::<E>))], &event),
            Some(reducers) => {
                let errors = self.run_reducers::<E>(&reducers, &event);
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

    /// Returns a view of the items of type `T`.
    pub fn query<T: SliceItem>(&mut self) -> SliceView<'_, T> {
        SliceView::new(self.slice_mut(T::TYPE_ID, T::POLICY))
    }

    /// Replaces the items of type `T`. Fails for a LOG slice.
    pub fn replace<T: SliceItem>(&mut self, items: &[T]) -> Result<(), SliceError> {
        let items = items.iter().cloned().map(identify_item).collect();
        self.slice_mut(T::TYPE_ID, T::POLICY).apply_change(SliceChange::Replace(items))
    }

    /// Sets the first items of the slice of type `T` without running reducers. Replaces the items of a STATE slice;
    /// fails for a LOG slice that has items.
    pub fn seed<T: SliceItem>(&mut self, items: &[T]) -> Result<(), SliceError> {
        let has_items = !self.query::<T>().is_empty()?;
        let slice = self.slice_mut(T::TYPE_ID, T::POLICY);
        if slice.policy() == SlicePolicy::State {
            return self.replace(items);
        }
        if has_items {
            slice.refuse_log_policy("seed")?;
        }
        slice.apply_change(SliceChange::Append(items.iter().cloned().map(identify_item).collect()))
    }

    /// Removes the items of type `T` for which `predicate` returns true, and returns their number. Fails for a LOG
    /// slice.
    pub fn clear_where<T: SliceItem>(
        &mut self,
        mut predicate: impl FnMut(&T) -> bool,
    ) -> Result<usize, SliceError> {
        self.slice_mut(T::TYPE_ID, T::POLICY).refuse_log_policy("clear")?;
        let mut items = self.query::<T>().read_all()?;
        let count = items.len();
        items.retain(|item| !predicate(item));
        if items.len() < count {
            self.replace(&items)?;
        }
        Ok(count - items.len())
    }

    /// Removes all items of type `T`. Fails for a LOG slice.
    pub fn clear<T: SliceItem>(&mut self) -> Result<(), SliceError> {
        self.slice_mut(T::TYPE_ID, T::POLICY).apply_change(SliceChange::Clear)
    }

    /// Removes all items of all types. Fails and changes nothing if there is a LOG slice.
    pub fn reset(&mut self) -> Result<(), SliceError> {
        for slice in self.slices.values() {
            slice.refuse_log_policy("reset")?;
        }
        let mut slices = self.slices.values_mut();
        slices.try_for_each(|slice| slice.apply_change(SliceChange::Clear))
    }

    /// The slice of a type, created under the current policy if it does not exist.
    pub(super) fn slice_mut(&mut self, type_id: &'static str, default: SlicePolicy) -> &mut Slice {
        let policy = *self.policies.entry(type_id).or_insert(default);
        self.slices.entry(type_id).or_insert_with(|| Slice::new(type_id, policy, &self.config))
    }

    /// The items of a type as JSON, including those in a file that was not opened yet.
    pub(super) fn read_objects(
        &self,
        type_id: &'static str,
        policy: SlicePolicy,
    ) -> Result<Vec<Object>, SliceError> {
        match self.slices.get(type_id) {
            Some(slice) => slice.read_objects(),
            None => Slice::new(type_id, policy, &self.config).read_objects(),
        }
    }

    fn run_reducers<E: SliceItem>(
        &mut self,
        reducers: &[(&'static str, ErasedReducer)],
        event: &E,
    ) -> Vec<SliceError> {
        let mut errors = Vec::new();
        for (type_id, reducer) in reducers {
            let slice = self.slice_mut(type_id, E::POLICY);
            let change = reducer(slice, event);
            errors.extend(change.and_then(|change| slice.apply_change(change)).err());
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

/// Converts the item to JSON, with an id if it needs one.
fn identify_item<T: SliceItem>(mut item: T) -> Object {
    item.identify();
    item.to_json()
}

fn reasons(errors: &[SliceError]) -> String {
    let reasons: Vec<_> = errors.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}

fn erase_reducer<E: SliceItem, T: SliceItem>(
    reducer: impl Fn(&SliceView<'_, T>, &E) -> Result<SliceChange<T>, SliceError> + Send + 'static,
) -> ErasedReducer {
    let to_json = |items: Vec<T>| items.into_iter().map(identify_item).collect();
    Box::new(move |slice, event| {
        let event = event.downcast_ref().expect("routed by the event's type");
        Ok(match reducer(&SliceView::new(slice), event)? {
            SliceChange::Append(items) => SliceChange::Append(to_json(items)),
            SliceChange::Replace(items) => SliceChange::Replace(to_json(items)),
            SliceChange::Clear => SliceChange::Clear,
        })
    })
}

#[cfg(test)]
mod tests;
