//! Paths of files that other events name by an id (`files.h`): [`Places`] keeps them, and `paths`
//! has a row for each that is used.

use sysdock_calls::{Issue, write_paths};

use sysdock_table::facts::issues as facts;

use crate::{
    BpfError,
    conversion::{Conversion, places::Places},
    events::{EVENT_PATH, PATH_CUT, PATH_NO_DIRECTORY, PathEvent, Raw},
    families::{Converter, Family, Recorded},
};

/// The path of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    pub(crate) id: u64,
    pub(crate) inode: u64,
    pub(crate) device: u32,
    /// Size of the file when it was reported [B].
    pub(crate) size: u64,
    pub(crate) mode: u16,
    pub(crate) magic: u32,
    pub(crate) cut: bool,
    pub(crate) no_directory: bool,
    names: &'a [u8],
}

impl<'a> Path<'a> {
    /// `None`: the event is broken. The path of an event with `PATH_DELETED` is that before the
    /// deletion.
    pub(crate) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, rest) = event.read::<PathEvent>()?;
        let PathEvent { id, inode, device, size, mode, magic, .. } = fixed;
        let has = |flag| u32::from(fixed.flags) & flag != 0;
        let names = rest.get(..usize::from(fixed.length))?;
        Some(Path { id, inode, device, size, mode, magic, cut: has(PATH_CUT), no_directory: has(PATH_NO_DIRECTORY), names })
    }

    /// Names from the leaf to the root.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.names;
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            Some(name)
        })
    }
}

/// Fills [`Places`].
#[derive(Debug, Default)]
pub(crate) struct Paths;

impl Converter for Paths {
    const FAMILY: Family = Family {
        name: "paths",
        shows: "where files lie",
        recorded: Recorded::Always,
        kinds: &[(EVENT_PATH, "paths")],
        ..Family::NONE
    };

    fn is_whole(event: &Raw<'_>) -> bool {
        Path::of(event).is_some()
    }

    fn at_ns(_event: &Raw<'_>) -> Option<u64> {
        None
    }

    fn survey(&mut self, event: &Raw<'_>, places: &mut Places) {
        Path::of(event).iter().for_each(|path| places.add(path));
    }

    fn finish(&mut self, conversion: &mut Conversion<'_>) -> Result<(), BpfError> {
        let unknown = conversion.unknown_paths;
        let detail = facts::unknown_paths(unknown);
        conversion.issues.add_many(Issue::UnknownPath, 0, unknown, detail);
        Ok(write_paths(conversion.recording, &conversion.objects)?)
    }
}
