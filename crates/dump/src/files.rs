//! Open files of processes.

use rustc_hash::FxHashSet;
use sysdock_symbols::btf::Field;

use crate::{
    error::Fault,
    format::u64_at,
    kernel::Kernel,
    paths::{MountedEntry, Paths},
    tasks::Task,
};

/// Limit for the descriptors of a process. The default limit of the kernel is 2^20.
const MOST_DESCRIPTORS: u64 = 1 << 23;
const PIPES: u64 = 0x5049_5045;
const ANONYMOUS: u64 = 0x0904_1934;

/// An open file of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFile {
    /// Index of its process in the list of tasks.
    pub task: usize,
    /// Address of its `file`.
    pub(crate) address: u64,
    /// Number of its descriptor.
    pub descriptor: u64,
    /// Path in the form of /proc/PID/fd.
    pub path: Option<String>,
    /// Bits of its kind, as in `st_mode`.
    pub mode: Option<u64>,
    /// Number of its inode.
    pub inode: Option<u64>,
    /// Position of the next read or write.
    pub position: Option<u64>,
    /// Size of the file.
    pub size: Option<u64>,
    /// Why something is missing.
    pub fault: Option<Fault>,
}

/// Offsets of the members that are read.
struct Layout<'k> {
    paths: Paths<'k>,
    files: Field,
    table: Field,
    most: Field,
    array: Field,
    mount: Field,
    entry: Field,
    inode: Field,
    position: Field,
    mode: Field,
    number: Field,
    size: Field,
    super_block: Field,
    magic: Field,
}

impl<'k> Layout<'k> {
    fn of(kernel: &'k Kernel) -> Result<Layout<'k>, Fault> {
        Ok(Layout {
            paths: Paths::of(kernel)?,
            files: kernel.field("task_struct", "files")?,
            table: kernel.field("files_struct", "fdt")?,
            most: kernel.field("fdtable", "max_fds")?,
            array: kernel.field("fdtable", "fd")?,
            mount: kernel.field("file", "f_path.mnt")?,
            entry: kernel.field("file", "f_path.dentry")?,
            inode: kernel.field("file", "f_inode")?,
            position: kernel.field("file", "f_pos")?,
            mode: kernel.field("inode", "i_mode")?,
            number: kernel.field("inode", "i_ino")?,
            size: kernel.field("inode", "i_size")?,
            super_block: kernel.field("inode", "i_sb")?,
            magic: kernel.field("super_block", "s_magic")?,
        })
    }
}

/// Open files, and tables of descriptors that cannot be read.
#[derive(Debug, Default)]
pub struct OpenFiles {
    /// Ordered by process, then by descriptor.
    pub files: Vec<OpenFile>,
    /// Missing tables: index of the task, and the reason.
    pub broken: Vec<(usize, Fault)>,
}

impl Kernel {
    /// The open files of these tasks. Threads that share a table have them once.
    ///
    /// # Errors
    /// A [`Fault`]: this kernel's layout is unknown.
    pub fn files(&self, tasks: &[Task]) -> Result<OpenFiles, Fault> {
        let layout = Layout::of(self)?;
        let (mut found, mut seen) = (OpenFiles::default(), FxHashSet::default());
        for (number, task) in tasks.iter().enumerate() {
            let Ok(files) = self.number(task.address, layout.files) else { continue };
            if files == 0 || !seen.insert(files) {
                continue;
            }
            if let Err(fault) = self.files_of(number, files, &layout, &mut found.files) {
                found.broken.push((number, fault));
            }
        }
        Ok(found)
    }

    fn files_of(&self, task: usize, files: u64, layout: &Layout<'_>, found: &mut Vec<OpenFile>) -> Result<(), Fault> {
        let table = self.number(files, layout.table)?;
        let (most, array) = (self.number(table, layout.most)?, self.number(table, layout.array)?);
        if most > MOST_DESCRIPTORS {
            return Err(Fault::TooLong);
        }
        let pointers = self.memory.bytes(array, most * 8)?;
        for (descriptor, pointer) in pointers.chunks_exact(8).enumerate() {
            // The lowest bits may be flags of the kernel.
            let file = u64_at(pointer, 0) & !3;
            if file != 0 {
                found.push(self.file(task, descriptor as u64, file, layout));
            }
        }
        Ok(())
    }

    fn file(&self, task: usize, descriptor: u64, file: u64, layout: &Layout<'_>) -> OpenFile {
        let mut open = OpenFile {
            task,
            address: file,
            descriptor,
            path: None,
            mode: None,
            inode: None,
            position: None,
            size: None,
            fault: None,
        };
        let read = (|| {
            open.position = Some(self.number(file, layout.position)?);
            let place = MountedEntry { mount: self.number(file, layout.mount)?, entry: self.number(file, layout.entry)? };
            let inode = self.number(file, layout.inode)?;
            open.mode = Some(self.number(inode, layout.mode)?);
            open.inode = Some(self.number(inode, layout.number)?);
            open.size = Some(self.number(inode, layout.size)?);
            let magic = self.number(self.number(inode, layout.super_block)?, layout.magic)?;
            open.path = Some(name_of(place, magic, &open, &layout.paths)?);
            Ok(())
        })();
        open.fault = read.err();
        open
    }
}

/// A file outside of folders is named by its kind.
fn name_of(place: MountedEntry, magic: u64, open: &OpenFile, paths: &Paths<'_>) -> Result<String, Fault> {
    const SOCKET: u64 = 0o140_000;
    const KIND: u64 = 0o170_000;
    let number = open.inode.unwrap_or(0);
    if magic == PIPES {
        Ok(format!("pipe:[{number}]"))
    } else if open.mode.unwrap_or(0) & KIND == SOCKET {
        Ok(format!("socket:[{number}]"))
    } else if magic == ANONYMOUS {
        Ok(format!("anon_inode:{}", paths.name(place.entry)?))
    } else {
        paths.path(place)
    }
}
