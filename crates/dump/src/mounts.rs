//! Mounts in the view of the first process, and modules.

use crate::{error::Fault, kernel::Kernel, paths::Paths, tasks::Task, walk::Walk};

/// A list in `mnt_namespace` may contain marks of readers (`MNT_CURSOR`), which are no mounts.
const CURSOR: u64 = 0x1000_0000;
const READ_ONLY: u64 = 0x40;
/// `MODULE_REF_BASE`: the start value of a module's reference count.
const FIRST_USER: u64 = 1;

/// A mounted file system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The mount point.
    pub path: String,
    /// Type of the file system.
    pub fs_type: String,
    /// The device, or another source.
    pub source: String,
    /// Whether the mount is read-only.
    pub is_read_only: bool,
    /// Why something is missing.
    pub fault: Option<Fault>,
}

/// A module of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Module {
    pub name: String,
    /// Size in memory [B].
    pub bytes: u64,
    /// Number of users.
    pub users: u64,
    /// Taints that it causes, as bits.
    pub taints: u64,
    /// Why something is missing.
    pub fault: Option<Fault>,
}

impl Kernel {
    /// The mounts in the view of process 1, and why some may be missing.
    ///
    /// # Errors
    /// A [`Fault`]: this kernel's layout is unknown, or there is no process 1.
    pub fn mounts(&self, tasks: &[Task]) -> Result<(Vec<Mount>, Option<Fault>), Fault> {
        let first = tasks.iter().find(|task| task.pid == Some(1)).ok_or(Fault::NotInDump)?;
        let proxy = self.number(first.address, self.field("task_struct", "nsproxy")?)?;
        let space = self.number(proxy, self.field("nsproxy", "mnt_ns")?)?;
        let walk = self.mounts_of(space)?;
        let paths = Paths::of(self)?;
        let mounts = walk.entries.iter().filter_map(|mount| self.mount(*mount, &paths).transpose()).collect::<Result<_, _>>()?;
        Ok((mounts, walk.fault))
    }

    /// The mounts of a name space: a list before 6.8, a tree since.
    fn mounts_of(&self, space: u64) -> Result<Walk, Fault> {
        // Before that, `mounts` of the name space is their number.
        if let Ok(node) = self.field("mount", "mnt_node") {
            let tree = self.field("mnt_namespace", "mounts")?;
            return self.tree(space.wrapping_add(tree.offset), node.offset);
        }
        let list = self.field("mnt_namespace", "list")?;
        Ok(self.list(space.wrapping_add(list.offset), self.field("mount", "mnt_list")?.offset))
    }

    fn mount(&self, mount: u64, paths: &Paths<'_>) -> Result<Option<Mount>, Fault> {
        let inner = mount.wrapping_add(self.field("mount", "mnt")?.offset);
        let (flags, block) = (self.field("vfsmount", "mnt_flags")?, self.field("vfsmount", "mnt_sb")?);
        let (source, kind) = (self.field("mount", "mnt_devname")?, self.field("super_block", "s_type")?);
        let name = self.field("file_system_type", "name")?;
        let mut found = Mount::default();
        let read = (|| {
            let flags = self.number(inner, flags)?;
            if flags & CURSOR != 0 {
                return Ok(false);
            }
            found.is_read_only = flags & READ_ONLY != 0;
            let kind = self.number(self.number(inner, block)?, kind)?;
            found.fs_type = self.string(self.number(kind, name)?)?;
            found.source = self.string(self.number(mount, source)?)?;
            found.path = paths.path(paths.root_of(inner)?)?;
            Ok(true)
        })();
        found.fault = read.err();
        Ok((read != Ok(false)).then_some(found))
    }

    /// The loaded modules, and why some may be missing.
    ///
    /// # Errors
    /// A [`Fault`]: this kernel has no list of them.
    pub fn modules(&self) -> Result<(Vec<Module>, Option<Fault>), Fault> {
        let walk = self.list(self.symbol("modules")?, self.field("module", "list")?.offset);
        let modules = walk.entries.iter().map(|module| self.module(*module)).collect::<Result<_, _>>()?;
        Ok((modules, walk.fault))
    }

    fn module(&self, module: u64) -> Result<Module, Fault> {
        let (name, users) = (self.field("module", "name")?, self.field("module", "refcnt.counter").ok());
        let taints = self.field("module", "taints").ok();
        let mut found = Module::default();
        let read = (|| {
            found.name = self.text(module, name)?;
            found.bytes = self.size_of_module(module)?;
            if let Some(users) = users {
                found.users = self.number(module, users)?.saturating_sub(FIRST_USER);
            }
            if let Some(taints) = taints {
                found.taints = self.number(module, taints)?;
            }
            Ok(())
        })();
        found.fault = read.err();
        Ok(found)
    }

    /// Size of a module: two areas before 6.4, an array of them since.
    fn size_of_module(&self, module: u64) -> Result<u64, Fault> {
        if let Ok(pieces) = self.field("module", "mem") {
            let (step, size) = (self.types.element_size(&pieces), self.field("module_memory", "size")?);
            let count = pieces.size / step.max(1);
            let size_of = |piece: usize| self.number(module.wrapping_add(pieces.offset + (piece * step) as u64), size);
            return (0..count).try_fold(0, |sum: u64, piece| Ok(sum.saturating_add(size_of(piece)?)));
        }
        let piece = |name: &str| self.number(module, self.field("module", name)?);
        Ok(piece("core_layout.size")?.saturating_add(piece("init_layout.size")?))
    }
}
