//! What the plugin says inside qemu, where no other part of sysdock can say it: text is formed here only.

use std::{io, path::PathBuf};

/// Why the plugin refuses to start.
#[derive(Debug)]
pub(crate) enum PluginError {
    /// An option without a value.
    NoValue(String),
    /// A value that is not understood, with its key.
    Value(String),
    UnknownOption(String),
    /// Neither a file nor memory is named.
    NoOutput,
    /// The guest has another processor.
    Processor,
    /// The guest has this many processors.
    Processors(i32),
    /// Memory is for programs, a file is for guests.
    OutputOfOtherKind,
    /// This qemu lacks functions that the plugin calls.
    OldQemu,
    /// A file cannot be read or written.
    Io(PathBuf, io::Error),
    /// The header is not JSON.
    Header(PathBuf, serde_json::Error),
    /// The memory behind this descriptor cannot be mapped.
    Memory(i32, io::Error),
}

impl PluginError {
    pub(crate) fn text(&self) -> String {
        match self {
            PluginError::NoValue(word) => format!("`{word}`: key=value is expected"),
            PluginError::Value(word) => format!("`{word}`: the value is not understood"),
            PluginError::UnknownOption(key) => format!("`{key}`: no such option"),
            PluginError::NoOutput => "out=FILE is missing".into(),
            PluginError::Processor => "only guests of x86-64 can be traced".into(),
            PluginError::Processors(number) => format!("the guest has {number} processors; one can be traced: -smp 1"),
            PluginError::OutputOfOtherKind => "shared=N is for programs under qemu-user, and out=FILE for guests".into(),
            PluginError::OldQemu => "this qemu lacks functions that are needed".into(),
            PluginError::Io(path, error) => format!("{}: {error}", path.display()),
            PluginError::Header(path, error) => format!("{}: {error}", path.display()),
            PluginError::Memory(descriptor, error) => format!("shared={descriptor}: {error}"),
        }
    }
}
