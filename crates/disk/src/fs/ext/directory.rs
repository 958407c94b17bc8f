//! Names in directories (kernel: Documentation/filesystems/ext4/directory.rst). Hashed directories
//! are read as linear ones: the nodes of their index look like a single unused entry.

use super::{bytes::le16, bytes::le32, inode::Raw, window::Names};

/// Bytes with entries, and their directory.
pub(super) struct Entries<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) directory: u32,
    /// Whether names are ciphertext.
    pub(super) is_encrypted: bool,
    /// Largest inode number.
    pub(super) inodes: u32,
}

impl Entries<'_> {
    /// Add all names except `.` and `..`. False: the bytes after a wrong length could not be read,
    /// or an inode number is invalid.
    pub(super) fn read(&self, names: &mut Names) -> bool {
        const HEAD: usize = 8;
        let (mut at, mut is_whole) = (0, true);
        while at + HEAD <= self.bytes.len() {
            let entry = &self.bytes[at..];
            let length = match usize::from(le16(entry, 4)) {
                // A block of 64 KiB, whose length the field cannot express.
                0 | 65535 if self.bytes.len() >= 65536 => 65536,
                length => length & !3 | (length & 3) << 16,
            };
            let (inode, name_length) = (le32(entry, 0), usize::from(entry[6]));
            if length < HEAD || length > entry.len() || inode != 0 && HEAD + name_length > length {
                return false;
            }
            let name = entry.get(HEAD..HEAD + name_length).unwrap_or_default();
            if inode > self.inodes {
                is_whole = false;
            } else if inode != 0 && !name.is_empty() && name != b"." && name != b".." {
                self.take(inode, name, names);
            }
            at += length;
        }
        is_whole
    }

    fn take(&self, inode: u32, name: &[u8], names: &mut Names) {
        if self.is_encrypted {
            let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
            names.add(inode, self.directory, hex.as_bytes());
        } else {
            names.add(inode, self.directory, name);
        }
    }
}

/// Read names that are in the inode of their directory: after the number of its parent, and in the
/// attribute with the rest.
pub(super) fn read_inline(raw: Raw<'_>, inodes: u32, names: &mut Names) -> bool {
    let part = |bytes| Entries { bytes, directory: raw.number, is_encrypted: raw.is_encrypted(), inodes };
    let first = part(&raw.i_block()[4..]).read(names);
    let rest = raw.inline_rest().is_none_or(|bytes| part(bytes).read(names));
    first && rest
}
