//! Reducers: how an event changes a slice.

use super::slice::{Change, SliceError, SliceItem, View};

/// Keeps every item. Never reads the slice.
pub fn append_all<T: SliceItem>(_: &View<'_, T>, item: &T) -> Result<Change<T>, SliceError> {
    Ok(Change::Append(vec![item.clone()]))
}

/// Keeps only the newest item.
pub fn replace_latest<T: SliceItem>(_: &View<'_, T>, item: &T) -> Result<Change<T>, SliceError> {
    Ok(Change::Replace(vec![item.clone()]))
}

/// Keeps one item per key; a new item replaces the old one in place.
pub fn upsert_by<T: SliceItem, K: PartialEq>(
    key: impl Fn(&T) -> K + Send + 'static,
) -> impl Fn(&View<'_, T>, &T) -> Result<Change<T>, SliceError> + Send + 'static {
    move |view, item| {
        let mut items = view.all()?;
        let index = items.iter().position(|old| key(old) == key(item));
        let index = index.unwrap_or(items.len());
        items.retain(|old| key(old) != key(item));
        items.insert(index, item.clone());
        Ok(Change::Replace(items))
    }
}

/// Keeps one item per key; a new item is moved to the end.
pub fn replace_latest_by<T: SliceItem, K: PartialEq>(
    key: impl Fn(&T) -> K + Send + 'static,
) -> impl Fn(&View<'_, T>, &T) -> Result<Change<T>, SliceError> + Send + 'static {
    move |view, item| {
        let mut items = view.where_(|old| key(old) != key(item))?;
        items.push(item.clone());
        Ok(Change::Replace(items))
    }
}
