//! What a scan states of the file system and its devices: tables of few rows.

use std::path::Path;

use sysdock_table::{Column, Recording, TableError};

/// The row of `file_systems`.
#[derive(Clone, Debug)]
pub(crate) struct FileSystemRow {
    pub(crate) fs_type: String,
    pub(crate) source: String,
    pub(crate) mount_point: Option<String>,
    pub(crate) label: Option<String>,
    pub(crate) uuid: Option<String>,
    pub(crate) block_bytes: u64,
    pub(crate) size_bytes: u64,
    pub(crate) free_bytes: Option<u64>,
    pub(crate) method: &'static str,
    pub(crate) reason: String,
    pub(crate) files: u64,
    pub(crate) unread_files: u64,
    pub(crate) is_whole: bool,
    /// The word of `moment`.
    pub(crate) moment: &'static str,
}

impl FileSystemRow {
    pub(crate) fn write(&self, recording: &mut Recording) -> Result<(), TableError> {
        let text = |value: &str| Column::String(vec![Some(value.into())]);
        let number = |value: u64| Column::Int64(vec![Some(value.cast_signed())]);
        let columns = vec![
            Column::words([Some(self.fs_type.as_str())]),
            text(&self.source),
            Column::String(vec![self.mount_point.clone()]),
            Column::String(vec![self.label.clone()]),
            Column::String(vec![self.uuid.clone()]),
            number(self.block_bytes),
            number(self.size_bytes),
            Column::Int64(vec![self.free_bytes.map(u64::cast_signed)]),
            Column::words([Some(self.method)]),
            text(&self.reason),
            number(self.files),
            number(self.unread_files),
            Column::Bool(vec![self.is_whole]),
            Column::words([Some(self.moment)]),
        ];
        recording.write("file_systems", columns)
    }
}

/// A row of `devices`.
#[derive(Clone, Debug)]
pub(crate) struct DeviceRow {
    /// As `extents` and others name it.
    pub(crate) number: u32,
    pub(crate) path: Option<String>,
    pub(crate) size_bytes: u64,
    /// What chunks lie on, in a file system that has them.
    pub(crate) allocated_bytes: Option<u64>,
    pub(crate) free_bytes: Option<u64>,
    pub(crate) is_missing: bool,
}

impl DeviceRow {
    /// The only one of a file system.
    pub(crate) fn only(file_system: &FileSystemRow) -> DeviceRow {
        DeviceRow {
            number: 0,
            path: Some(file_system.source.clone()),
            size_bytes: file_system.size_bytes,
            allocated_bytes: None,
            free_bytes: file_system.free_bytes,
            is_missing: false,
        }
    }

    pub(crate) fn write(rows: &[DeviceRow], recording: &mut Recording) -> Result<(), TableError> {
        let numbers = |value: fn(&DeviceRow) -> Option<u64>| {
            Column::Int64(rows.iter().map(|row| value(row).map(u64::cast_signed)).collect())
        };
        let columns = vec![
            Column::Int32(rows.iter().map(|row| Some(row.number.cast_signed())).collect()),
            Column::String(rows.iter().map(|row| row.path.clone()).collect()),
            numbers(|row| Some(row.size_bytes)),
            numbers(|row| row.allocated_bytes),
            numbers(|row| row.free_bytes),
            Column::Bool(rows.iter().map(|row| row.is_missing).collect()),
        ];
        recording.write("devices", columns)
    }
}

/// What could not be understood of `path`: kinds, and how many of each with an example.
pub(crate) fn write_issues(issues: &[(&'static str, String)], path: &Path, recording: &mut Recording) -> Result<(), TableError> {
    if issues.is_empty() {
        return Ok(());
    }
    let source = path.to_string_lossy();
    let columns = vec![
        Column::words(issues.iter().map(|_| Some(&*source))),
        Column::Int64(vec![Some(0); issues.len()]),
        Column::words(issues.iter().map(|(issue, _)| Some(*issue))),
        Column::Bool(vec![false; issues.len()]),
        Column::String(issues.iter().map(|(_, detail)| Some(detail.clone())).collect()),
        Column::String(vec![None; issues.len()]),
    ];
    recording.write("import_issues", columns)
}
