//! What people see: views that are no format of anybody.

pub mod markdown;
