//! Functions of the kernel by address, from /proc/kallsyms (proc(5)). Addresses change with each
//! boot, and are visible only to those with the right to see them.

use std::{
    cell::OnceCell,
    fs::{self, File},
    io::{Read, Seek},
};

use sysdock_symbols::{
    Symbol,
    kallsyms::{self, Places},
};

const SYMBOLS: &str = "/proc/kallsyms";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// An address further after the start of a function does not belong to it [B].
const LONGEST_FUNCTION: u64 = 1 << 20;
/// A kernel that lists its variables has thousands. Others list a few (`CONFIG_KALLSYMS_ALL` is
/// off), with unlisted ones in between.
const FEW_VARIABLES: usize = 1000;
/// Symbol at the end of the kernel's own code.
const END_OF_CODE: &str = "_etext";

/// The id of this boot.
#[must_use]
pub fn boot() -> Option<String> {
    Some(fs::read_to_string(BOOT).ok()?.trim().to_string())
}

/// The names of the kernel's functions and variables. Opened with the right to see addresses, they
/// can be read later with fewer rights.
#[derive(Debug)]
pub struct KernelNames {
    file: Option<File>,
    /// Whether code that the kernel generated since boot is that of the recording.
    with_made_code: bool,
    /// The lines, about 20 MB.
    read: OnceCell<Lines>,
    /// Whether the names are those of the recorded kernel, independent of this machine's boot.
    of_any_boot: bool,
}

impl KernelNames {
    /// Open the names. They are read on first use, which takes about 60 ms, for recordings that
    /// contain functions of the kernel.
    #[must_use]
    pub fn open() -> Self {
        KernelNames { file: File::open(SYMBOLS).ok(), with_made_code: true, read: OnceCell::new(), of_any_boot: false }
    }

    /// For a recording that ended some time ago: without code that the kernel generates at run
    /// time, such as programs of BPF, because another may be at the same address now.
    #[must_use]
    pub(crate) fn open_later() -> Self {
        KernelNames { with_made_code: false, ..Self::open() }
    }

    /// The names of the recorded kernel, in the form of /proc/kallsyms, from its own memory.
    #[must_use]
    pub fn of_recorded(text: String) -> Self {
        let read = OnceCell::from(Lines::new(text));
        KernelNames { file: None, with_made_code: true, read, of_any_boot: true }
    }

    /// The functions at each of these addresses; none if they are unknown: the machine was rebooted
    /// since, or shows no addresses.
    pub(crate) fn symbols(&self, addresses: &[u64], of_boot: Option<&str>) -> Vec<Vec<Symbol>> {
        let is_this = self.of_any_boot || is_this_boot(of_boot);
        let found = |address: &u64| is_this.then(|| self.symbol(*address)).flatten().into_iter().collect();
        addresses.iter().map(found).collect()
    }

    /// The variable at each of these addresses, and the offset of the address in it.
    pub(crate) fn variables(&self, addresses: &[u64], of_boot: Option<&str>) -> Vec<Option<(String, u64)>> {
        let is_this = self.of_any_boot || is_this_boot(of_boot);
        addresses.iter().map(|address| is_this.then(|| self.variable(*address)).flatten()).collect()
    }

    /// The function that is at an address now.
    pub(crate) fn symbol(&self, address: u64) -> Option<Symbol> {
        self.lines().symbol(address, self.with_made_code)
    }

    /// The variable that is at an address now, and the offset in it.
    pub(crate) fn variable(&self, address: u64) -> Option<(String, u64)> {
        self.lines().variable(address)
    }

    fn lines(&self) -> &Lines {
        self.read.get_or_init(|| {
            let mut text = String::new();
            if let Some(mut file) = self.file.as_ref()
                && file.rewind().and_then(|()| file.read_to_string(&mut text)).is_err()
            {
                text.clear();
            }
            Lines::new(text)
        })
    }
}

fn is_this_boot(of_boot: Option<&str>) -> bool {
    of_boot.is_some() && boot().as_deref() == of_boot
}

/// The text of the file, with the locations of functions and variables in it.
#[derive(Debug)]
struct Lines {
    text: String,
    functions: Places,
    /// Looked for on first use: only names of locks need them.
    variables: OnceCell<Places>,
    code_end: Option<u64>,
}

impl Lines {
    fn new(text: String) -> Self {
        let functions = Places::of(&text, |line| line.is_code());
        let code_end = kallsyms::lines(&text).find(|line| line.name == END_OF_CODE).map(|line| line.address);
        Lines { text, functions, variables: OnceCell::new(), code_end }
    }

    fn variables(&self) -> &Places {
        self.variables.get_or_init(|| {
            let found = Places::of(&self.text, |line| matches!(line.kind, "d" | "D" | "b" | "B" | "r" | "R"));
            if found.number() < FEW_VARIABLES { Places::default() } else { found }
        })
    }

    fn symbol(&self, address: u64, with_made_code: bool) -> Option<Symbol> {
        let line = self.functions.before(&self.text, address)?;
        let offset = address - line.address;
        let is_there = match line.module {
            Some(module) => with_made_code || !is_made(module),
            None => self.code_end.is_none_or(|end| address < end),
        };
        (offset < LONGEST_FUNCTION && is_there).then(|| Symbol {
            object: line.module.map(Into::into),
            function: Some(line.name.to_string()),
            offset: i64::try_from(offset).ok(),
            source: None,
        })
    }

    fn variable(&self, address: u64) -> Option<(String, u64)> {
        self.variables().before(&self.text, address).map(|line| (line.name.to_string(), address - line.address))
    }
}

/// Whether code in this module is generated at run time.
fn is_made(module: &str) -> bool {
    module == "[bpf]" || module.starts_with("[__builtin__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_reaches_to_the_next_one() {
        let text = "0000000000000000 A per_cpu\nffffffff81000100 T second\nffffffff81000000 T first\nffffffff81000000 t also_first\n\
                    ffffffff81000080 D data\nffffffff81000200 T _etext\nffffffffc0001000 t ext4_write\t[ext4]\ngarbage\n\
                    ffffffffc0002000 t bpf_prog_0123_enter\t[bpf]\n";
        let lines = Lines::new(text.into());
        let at =
            |address| lines.symbol(address, true).map(|symbol| (symbol.function.unwrap(), symbol.offset.unwrap(), symbol.object));
        assert_eq!(at(0xffff_ffff_8100_00ff), Some(("first".into(), 0xff, None)));
        assert_eq!(at(0xffff_ffff_8100_0100), Some(("second".into(), 0, None)));
        assert_eq!(at(0xffff_ffff_c000_1008), Some(("ext4_write".into(), 8, Some("[ext4]".into()))));
        assert_eq!(at(0xffff_ffff_c000_2001), Some(("bpf_prog_0123_enter".into(), 1, Some("[bpf]".into()))));
        let nowhere = [0xffff_ffff_80ff_ffff, 0xffff_ffff_8100_0201, 0xffff_ffff_d000_0000];
        assert_eq!(nowhere.map(at), [None, None, None]);
        // Another program may be at this address by now.
        assert!(lines.symbol(0xffff_ffff_c000_2001, false).is_none() && lines.symbol(0xffff_ffff_c000_1008, false).is_some());
    }

    #[test]
    fn functions_of_this_kernel_have_names_until_it_is_started_again() {
        let text = fs::read_to_string(SYMBOLS).unwrap();
        let functions = kallsyms::lines(&text).filter(|line| line.kind == "T" && line.name != END_OF_CODE);
        let addresses: Vec<u64> = functions.take(1).map(|line| line.address).collect();
        let boot = boot();
        let named = |of: Option<&str>| KernelNames::open().symbols(&addresses, of).iter().flatten().count();
        // Without the right to see addresses there are no names.
        assert_eq!(named(boot.as_deref()), addresses.len());
        let names = KernelNames::open();
        let twice = [(); 2].map(|()| names.symbols(&addresses, boot.as_deref()).iter().flatten().count());
        assert_eq!(twice, [addresses.len(); 2]);
        assert_eq!((named(None), named(Some("another"))), (0, 0));
    }

    #[test]
    fn names_of_the_recorded_kernel_need_no_boot() {
        let text =
            "ffffffff81000000 T _stext\nffffffff81000100 t do_work\nffffffff82000000 T _etext\nffffffffc0000000 t help\t[loop]\n";
        let names = KernelNames::of_recorded(text.into());
        let found = names.symbols(&[0xffff_ffff_8100_0110, 0xffff_ffff_c000_0008], None);
        let named =
            |place: usize| (found[place][0].function.as_deref(), found[place][0].object.as_deref(), found[place][0].offset);
        assert_eq!(named(0), (Some("do_work"), None, Some(16)));
        assert_eq!(named(1), (Some("help"), Some("[loop]"), Some(8)));
    }
}
