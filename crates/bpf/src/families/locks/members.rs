//! Finds the member of a kernel structure that is a lock, from the kernel's description of its
//! types (BTF).

use std::{fs, path::Path, sync::Arc};

use rustc_hash::FxHashMap;
use sysdock_symbols::btf::{Type, Types};

use super::kinds::Kind;

const FOLDER: &str = "/sys/kernel/btf";
/// Limit for nested structures; no kernel has so many.
const DEEPEST: usize = 32;

/// The types of the running kernel, which are read on first use.
#[derive(Default)]
pub(super) struct KernelTypes {
    /// Those of the kernel first, then those of its modules.
    all: Option<Vec<Arc<Types>>>,
    by_name: FxHashMap<String, Vec<(usize, u32)>>,
}

impl KernelTypes {
    /// The path to a lock of this kind at this offset in a structure [B]: `inode.i_rwsem`. `None`:
    /// there is no such lock.
    pub(super) fn member(&mut self, structure: &str, offset: u64, kind: Kind) -> Option<String> {
        let found = self.structures(structure);
        let all = self.all.as_deref().unwrap_or_default();
        let path = found.into_iter().find_map(|(types, id)| path_to(&all[types], id, offset, kind, DEEPEST));
        path.map(|path| format!("{structure}{path}"))
    }

    /// Structures of a name; several parts of the kernel may have one each.
    fn structures(&mut self, name: &str) -> Vec<(usize, u32)> {
        if let Some(found) = self.by_name.get(name) {
            return found.clone();
        }
        let all = self.all.get_or_insert_with(|| read_all(Path::new(FOLDER)));
        let of = |(index, types): (usize, &Arc<Types>)| types.structures(name).map(|id| (index, id)).collect::<Vec<_>>();
        let found: Vec<_> = all.iter().enumerate().flat_map(of).collect();
        self.by_name.insert(name.to_string(), found.clone());
        found
    }
}

fn read_all(folder: &Path) -> Vec<Arc<Types>> {
    let read = |path: &Path, base| Some(Arc::new(Types::of(fs::read(path).ok()?, base)?));
    let Some(kernel) = read(&folder.join("vmlinux"), None) else { return Vec::new() };
    let modules = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let modules = modules.filter(|path| !path.ends_with("vmlinux")).filter_map(|path| read(&path, Some(Arc::clone(&kernel))));
    [Arc::clone(&kernel)].into_iter().chain(modules).collect()
}

/// Path of members to the lock, each preceded by a dot.
fn path_to(types: &Types, id: u32, offset: u64, kind: Kind, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let is_lock = || offset == 0 && kind.types().iter().any(|name| name.as_bytes() == types.name(id));
    match types.get(id) {
        Type::Alias { .. } | Type::Struct if is_lock() => Some(String::new()),
        Type::Alias { of } => path_to(types, of, offset, kind, depth),
        Type::Array { of, .. } => {
            let within = offset.checked_rem(types.size(of) as u64)?;
            Some(format!("[]{}", path_to(types, of, within, kind, depth)?))
        }
        Type::Struct | Type::Union => types.parts(id).find_map(|(name, part)| {
            let within = offset.checked_sub(part.offset).filter(|within| *within < types.size(part.of_type) as u64)?;
            let rest = path_to(types, part.of_type, within, kind, depth)?;
            // For an anonymous member only its own members are named.
            Some(if name.is_empty() { rest } else { format!(".{}{rest}", String::from_utf8_lossy(name)) })
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset of a member, as `pahole` reports it.
    fn offset_of(types: &Types, structure: &str, wanted: &str) -> u64 {
        let id = types.structures(structure).next().unwrap();
        types.parts(id).find(|(name, _)| *name == wanted.as_bytes()).unwrap().1.offset
    }

    #[test]
    fn locks_of_this_kernel_lie_where_its_types_say() {
        let kernel = Types::of(fs::read("/sys/kernel/btf/vmlinux").unwrap(), None).unwrap();
        let mut types = KernelTypes::default();
        let at = offset_of(&kernel, "inode", "i_rwsem");
        assert_eq!(types.member("inode", at, Kind::Rwsem).as_deref(), Some("inode.i_rwsem"));
        // Another kind of lock is not at this offset, and no lock is at the next one.
        assert_eq!(types.member("inode", at, Kind::Mutex), None);
        assert_eq!(types.member("inode", at + 1, Kind::Rwsem), None);
        let at = offset_of(&kernel, "signal_struct", "cred_guard_mutex");
        assert_eq!(types.member("signal_struct", at, Kind::Mutex).as_deref(), Some("signal_struct.cred_guard_mutex"));
        // The lock is in an anonymous part of the structure.
        let member = (0..4096).find_map(|at| types.member("mm_struct", at, Kind::Rwsem));
        assert_eq!(member.as_deref(), Some("mm_struct.mmap_lock"));
        let at = offset_of(&kernel, "dentry", "d_lockref");
        assert_eq!(types.member("dentry", at, Kind::Spinlock).as_deref(), Some("dentry.d_lockref.lock"));
        assert_eq!(types.member("no_such_structure", 0, Kind::Spinlock), None);
    }

    #[test]
    fn broken_types_are_none() {
        assert!(Types::of(Vec::new(), None).is_none());
        let whole = fs::read("/sys/kernel/btf/vmlinux").unwrap();
        assert!(Types::of(whole[..whole.len() / 2].to_vec(), None).is_none());
        assert!(Types::of(vec![0xff; 4096], None).is_none());
    }
}
