//! VMCOREINFO: lines `KEY=value` that the kernel writes for readers of dumps
//! (Documentation/admin-guide/kdump/vmcoreinfo.rst).

use crate::format::Physical;

const FIRST: &[u8] = b"OSRELEASE=";

#[derive(Clone, Debug, Default)]
pub(crate) struct VmCoreInfo(String);

impl VmCoreInfo {
    pub(crate) fn of(bytes: &[u8]) -> VmCoreInfo {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        VmCoreInfo(String::from_utf8_lossy(text).into_owned())
    }

    /// Search for it in memory, for a dump that has none of its own. It is at the beginning of a
    /// page.
    pub(crate) fn search(memory: &dyn Physical) -> Option<VmCoreInfo> {
        let (mut address, mut page) = (0, [0; 4096]);
        while let Some(next) = memory.next_page(address) {
            if memory.read(next, &mut page).is_ok() && page.starts_with(FIRST) {
                let info = VmCoreInfo::of(&page);
                if info.hexadecimal("SYMBOL(_stext)").is_some() {
                    return Some(info);
                }
            }
            address = next.checked_add(4096)?;
        }
        None
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    /// A hexadecimal value, for example the address of a symbol.
    pub(crate) fn hexadecimal(&self, key: &str) -> Option<u64> {
        u64::from_str_radix(self.text(key)?, 16).ok()
    }

    /// The address of a symbol.
    pub(crate) fn symbol(&self, name: &str) -> Option<u64> {
        self.hexadecimal(&format!("SYMBOL({name})"))
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Option<i64> {
        self.text(&format!("NUMBER({name})"))?.parse().ok()
    }

    /// The offset of a member.
    pub(crate) fn offset(&self, member: &str) -> Option<u64> {
        self.text(&format!("OFFSET({member})"))?.parse().ok()
    }

    /// The size of a type.
    pub(crate) fn size(&self, name: &str) -> Option<u64> {
        self.text(&format!("SIZE({name})"))?.parse().ok()
    }
}
