//! Methods that ask the kernel for the map of a whole file system, where it gives one.

use crate::DiskError;

mod by_owners;
mod by_trees;

pub(crate) use by_owners::by_owners;
pub(crate) use by_trees::by_trees;

/// A method that cannot be used here, or that failed.
pub(crate) enum Unable {
    Because(String),
    Failed(DiskError),
}

impl<E: Into<DiskError>> From<E> for Unable {
    fn from(error: E) -> Self {
        Unable::Failed(error.into())
    }
}
