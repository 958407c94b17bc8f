//! Mounts of this process (/proc/self/mountinfo, proc_pid_mountinfo(5)).

pub mod groups;

use std::{
    ffi::OsString,
    fs, io,
    os::unix::{
        ffi::OsStringExt,
        fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

/// A mounted file system.
#[derive(Clone, Debug)]
pub struct Mount {
    /// The mount point.
    pub point: PathBuf,
    /// Type of the file system, as the kernel names it.
    pub fs_type: String,
    /// The device, or another name that the file system gives.
    pub source: PathBuf,
    /// Options of the mount and of the file system, separated by commas.
    pub options: String,
    /// `st_dev` of its files.
    pub device: u64,
    /// The part of the file system that is mounted: `/` for all.
    pub root: PathBuf,
}

impl Mount {
    /// Whether a block device contains the file system.
    #[must_use]
    pub fn is_of(&self, device: &Path) -> bool {
        fs::metadata(device).is_ok_and(|status| status.file_type().is_block_device() && status.rdev() == self.device)
    }
}

/// All mounts that this process sees.
///
/// # Errors
///
/// There is no /proc.
pub fn all() -> io::Result<Vec<Mount>> {
    Ok(parse_all(&fs::read("/proc/self/mountinfo")?))
}

/// All mounts of the host. A service may have mounts of its own, which hide those of the host; then
/// they are read of the first process, if this one may do that.
///
/// # Errors
///
/// There is no /proc.
pub fn of_host() -> io::Result<Vec<Mount>> {
    Ok(parse_all(&fs::read(host_process().join("mountinfo"))?))
}

/// The folder in /proc of a process that sees the mounts of the host.
fn host_process() -> &'static Path {
    let first = Path::new("/proc/1");
    if fs::metadata(first.join("ns/mnt")).is_ok() { first } else { Path::new("/proc/self") }
}

fn parse_all(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(parse).collect()
}

/// The mount that contains a path: the innermost one, and of several at the same point the last.
/// (Subvolumes of btrfs have devices that no mount has.)
///
/// # Errors
///
/// There is no /proc.
pub fn of(path: &Path) -> io::Result<Option<Mount>> {
    Ok(innermost(all()?, path))
}

/// The same of these mounts.
#[must_use]
pub fn innermost(mounts: Vec<Mount>, path: &Path) -> Option<Mount> {
    let above = mounts.into_iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.as_os_str().len())
}

/// The mount of a whole block device, if there is one.
///
/// # Errors
///
/// There is no /proc.
pub fn of_device(device: u64) -> io::Result<Option<Mount>> {
    Ok(all()?.into_iter().find(|mount| mount.device == device && mount.root == Path::new("/")))
}

/// Parse `36 35 98:0 /root /point options - type source options`, with optional fields before the
/// dash.
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let (root, point, options) = (fields.next()?, fields.next()?, fields.next()?);
    let mut rest = fields.skip_while(|field| *field != b"-").skip(1);
    let (fs_type, source, of_super) = (rest.next()?, rest.next()?, rest.next()?);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(Mount {
        point: unescaped(point),
        fs_type: text(fs_type),
        source: unescaped(source),
        options: format!("{},{}", text(options), text(of_super)),
        device: libc::makedev(major.parse().ok()?, minor.parse().ok()?),
        root: unescaped(root),
    })
}

/// Decode a path: blanks and the like are written as `\040`.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'\\').then(|| after.get(..3)).flatten().and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_this_process_or_the_first() {
        let of = |mounts: Vec<Mount>| mounts.into_iter().map(|mount| mount.point).collect::<Vec<_>>();
        let same =
            fs::read_link("/proc/1/ns/mnt").ok().is_none_or(|first| Some(first) == fs::read_link("/proc/self/ns/mnt").ok());
        assert!(!same || of(of_host().unwrap()) == of(all().unwrap()));
        let root = innermost(of_host().unwrap(), Path::new("/no/such/place")).unwrap();
        assert_eq!(root.point, Path::new("/"));
    }

    #[test]
    fn fields_are_separated_by_the_dash() {
        let line = br"36 35 8:1 / /mnt/a\040b rw,noatime master:1 shared:2 - ext4 /dev/sda1 rw,errors=remount-ro";
        let mount = parse(line).unwrap();
        assert_eq!((mount.point.to_str(), mount.fs_type.as_str()), (Some("/mnt/a b"), "ext4"));
        assert_eq!(mount.source, Path::new("/dev/sda1"));
        assert_eq!(mount.options, "rw,noatime,rw,errors=remount-ro");
        assert_eq!(mount.device, libc::makedev(8, 1));
        assert!(parse(b"36 35 8:1 / /mnt").is_none());
    }
}
