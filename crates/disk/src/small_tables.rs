//! Tables of few rows: `file_systems`, `devices`, and `import_issues` of a scan.

use std::path::Path;

use sysdock_table::{Fact, Facts, Recording, TableError, rows};

/// Values of `import_issues.issue`, explained in docs/reference/import-issues.md.
pub(crate) const UNREADABLE_BLOCK: &str = "unreadable_block";
pub(crate) const BROKEN_OFF: &str = "scan_broken_off";

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
    pub(crate) reason: Facts,
    pub(crate) files: u64,
    pub(crate) unread_files: u64,
    pub(crate) is_whole: bool,
    /// The value of `moment`.
    pub(crate) moment: &'static str,
}

impl FileSystemRow {
    pub(crate) fn write(&self, recording: &mut Recording) -> Result<(), TableError> {
        let row = rows::FileSystems {
            fs_type: self.fs_type.as_str().into(),
            source: self.source.as_str().into(),
            mount_point: self.mount_point.as_deref().map(Into::into),
            label: self.label.as_deref().map(Into::into),
            uuid: self.uuid.as_deref().map(Into::into),
            block_bytes: self.block_bytes.cast_signed(),
            size_bytes: self.size_bytes.cast_signed(),
            free_bytes: self.free_bytes.map(u64::cast_signed),
            method: self.method.into(),
            reason: self.reason.clone(),
            files: self.files.cast_signed(),
            unread_files: self.unread_files.cast_signed(),
            whole: self.is_whole,
            moment: self.moment.into(),
        };
        recording.write_rows([row])
    }
}

/// A row of `devices`.
#[derive(Clone, Debug)]
pub(crate) struct DeviceRow {
    /// Number of the device in `extents` and other tables.
    pub(crate) number: u32,
    pub(crate) path: Option<String>,
    pub(crate) size_bytes: u64,
    /// Size of the ranges that belong to chunks, for a file system with chunks [B].
    pub(crate) allocated_bytes: Option<u64>,
    pub(crate) free_bytes: Option<u64>,
    pub(crate) is_missing: bool,
}

impl DeviceRow {
    /// The only device of a file system.
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
        recording.write_rows(rows.iter().map(|row| rows::Devices {
            device: row.number.cast_signed(),
            path: row.path.as_deref().map(Into::into),
            size_bytes: row.size_bytes.cast_signed(),
            allocated_bytes: row.allocated_bytes.map(u64::cast_signed),
            free_bytes: row.free_bytes.map(u64::cast_signed),
            missing: row.is_missing,
        }))
    }
}

/// Write what could not be understood of `path`: kinds, and the number of each with an example.
pub(crate) fn write_issues(issues: &[(&'static str, Fact)], path: &Path, recording: &mut Recording) -> Result<(), TableError> {
    if issues.is_empty() {
        return Ok(());
    }
    let source = path.to_string_lossy();
    recording.write_rows(issues.iter().map(|(issue, detail)| rows::ImportIssues {
        source: source.as_ref().into(),
        line: 0,
        issue: (*issue).into(),
        understood: false,
        detail: detail.clone().into(),
        excerpt: None,
    }))
}

/// A UUID as text.
pub(crate) fn hyphenated(uuid: [u8; 16]) -> String {
    let hex: Vec<String> = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..4, 4..6, 6..8, 8..10, 10..16];
    parts.map(|part| hex[part].concat()).join("-")
}
