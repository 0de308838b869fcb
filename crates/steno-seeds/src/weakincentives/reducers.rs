//! Reducers: how an event changes a slice.

use super::slice::{SliceChange, SliceError, SliceItem, SliceView};

/// Keeps every item. Never reads the slice.
pub fn append_all<T: SliceItem>(
    _: &SliceView<'_, T>,
    item: &T,
) -> Result<SliceChange<T>, SliceError> {
    Ok(SliceChange::Append(vec![item.clone()]))
}

/// Keeps only the newest item.
pub fn replace_latest<T: SliceItem>(
    _: &SliceView<'_, T>,
    item: &T,
) -> Result<SliceChange<T>, SliceError> {
    Ok(SliceChange::Replace(vec![item.clone()]))
}

/// Keeps one item per key; a new item replaces the old one in place.
pub fn upsert_by<T: SliceItem, K: PartialEq>(
    key: impl Fn(&T) -> K + Send + 'static,
) -> impl Fn(&SliceView<'_, T>, &T) -> Result<SliceChange<T>, SliceError> + Send + 'static {
    move |view, item| {
        let mut items = view.read_all()?;
        let index = items.iter().position(|old| key(old) == key(item));
        let index = index.unwrap_or(items.len());
        items.retain(|old| key(old) != key(item));
        items.insert(index, item.clone());
        Ok(SliceChange::Replace(items))
    }
}

/// Keeps one item per key; a new item is moved to the end.
pub fn replace_latest_by<T: SliceItem, K: PartialEq>(
    key: impl Fn(&T) -> K + Send + 'static,
) -> impl Fn(&SliceView<'_, T>, &T) -> Result<SliceChange<T>, SliceError> + Send + 'static {
    move |view, item| {
        let mut items = view.filter_items(|old| key(old) != key(item))?;
        items.push(item.clone());
        Ok(SliceChange::Replace(items))
    }
}
