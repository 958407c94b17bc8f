//! The view `file`: reads and writes by system calls, of files and block devices.

use sysdock_bpf::live::{FileSums, UsedFile};

use super::{
    table::Cell,
    views::{View, cannot, unreadable},
};
use crate::messages::Message;

/// The view of files.
pub(super) struct Files(FileSums);

impl Files {
    pub(super) fn begin() -> Result<Files, Message> {
        FileSums::begin().map(Files).map_err(|error| cannot("the view file", &error))
    }
}

impl View for Files {
    fn rows(&mut self) -> Result<Vec<Vec<Cell>>, Message> {
        let files = self.0.take().map_err(|error| unreadable(&error))?;
        Ok(files.iter().map(row).collect())
    }

    fn lost(&self) -> u64 {
        self.0.lost()
    }
}

fn row(file: &UsedFile) -> Vec<Cell> {
    let path = if file.path.is_empty() { &b"?"[..] } else { &file.path };
    vec![
        Cell::Whole(file.read_bytes + file.written_bytes),
        Cell::Whole(file.read_bytes),
        Cell::Whole(file.written_bytes),
        Cell::seconds(file.time_ns),
        Cell::name(&file.user),
        Cell::Whole(file.reads),
        Cell::Whole(file.writes),
        Cell::Whole(file.syncs),
        Cell::Whole(file.pid.into()),
        Cell::name(path),
    ]
}
