//! Recordings: the tables of `knowhow/tables`, their Parquet parts, and `recording.json`.
//!
//! Every other crate of the native half depends on this one and on no other; nothing here knows where rows come from.
//! The format is described in `docs/reference/recording.md`.

mod batch;
mod columns;
mod control;
mod dictionary;
mod encoder_thread;
mod error;
mod fact;
pub mod facts;
mod folder;
mod group;
mod lone_part;
mod manifest;
mod pages;
mod recording;
mod removal;
pub mod rows;
mod schema;
mod text;
mod user;
mod walk;

pub use batch::Batch;
pub use control::{Cancel, Progress};
pub use encoder_thread::{BlockEncoder, EncoderThread};
pub use error::TableError;
pub use fact::{Fact, Facts, Value, without_error_numbers};
pub use folder::{Access, Folder, names_in};
pub use group::{EncodedGroup, GroupEncoder, LateColumn, ROWS_PER_BLOCK};
pub use lone_part::{LonePart, footer_value};
pub use manifest::{
    Capture, Clock, Ending, FORMAT_VERSION, FamilyState, Manifest, Part, Source, TableEntry, Tool, Watched, WatchedProcess,
};
pub use pages::NULL;
pub use recording::{ROWS_PER_GROUP, ROWS_PER_PART, Recording};
pub use removal::{gone, remove_empty, remove_entries, remove_folder};
pub use schema::{CALL_ACTIONS, ColumnDef, ColumnType, TableDef, table};
pub use text::readable;
pub use user::{User, sudo_caller};
pub use walk::{is_name_of, open_folder, path_of};
