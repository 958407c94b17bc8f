//! Functions of the kernel by their addresses, as /proc/kallsyms has them (proc(5)): a line has address, kind, name, and where it is in a
//! module that in brackets. Addresses differ with each start of the machine, and are shown to those only who may see them.

use std::{
    fs::{self, File},
    io::{Read, Seek},
    sync::OnceLock,
};

use crate::stacks::symbols::Symbol;

const SYMBOLS: &str = "/proc/kallsyms";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Further behind the start of a function is none of its code.
const LONGEST_FUNCTION: u64 = 1 << 20;
/// A kernel that names its variables at all has thousands; others name a few (`CONFIG_KALLSYMS_ALL`), between which lie those of no name.
const FEW_VARIABLES: usize = 1000;

/// The id of this start of the machine.
#[must_use]
pub fn boot() -> Option<String> {
    Some(fs::read_to_string(BOOT).ok()?.trim().to_string())
}

/// The names of its functions. Whoever may see the addresses when this is opened can read them later, with fewer rights.
#[derive(Debug)]
pub struct KernelNames(Option<File>);

impl KernelNames {
    /// Not yet read: that takes some 60 ms, and is done only for a recording that has functions of the kernel.
    #[must_use]
    pub fn open() -> Self {
        KernelNames(File::open(SYMBOLS).ok())
    }

    /// The function at each of these addresses; none where it is not known: the machine was started again since, or shows no addresses.
    pub(crate) fn symbols(&self, addresses: &[u64], of_boot: Option<&str>) -> Vec<Vec<Symbol>> {
        let text = self.text(of_boot);
        let functions = functions(&text);
        addresses.iter().map(|address| symbol(&functions, *address).into_iter().collect()).collect()
    }

    /// The variable at each of these addresses, with how far behind its start the address is.
    pub(crate) fn variables(&self, addresses: &[u64], of_boot: Option<&str>) -> Vec<Option<(String, u64)>> {
        let text = self.text(of_boot);
        let variables = variables(&text);
        addresses.iter().map(|address| variable(&variables, *address)).collect()
    }

    /// All lines, if they are of this start of the machine.
    fn text(&self, of_boot: Option<&str>) -> String {
        let is_this = of_boot.is_some() && boot().as_deref() == of_boot;
        let mut text = String::new();
        if let Some(mut file) = self.0.as_ref().filter(|_| is_this)
            && file.rewind().and_then(|()| file.read_to_string(&mut text)).is_err()
        {
            text.clear();
        }
        text
    }
}

/// Names of functions and variables that stay in memory, for who asks for them again and again.
#[derive(Debug)]
pub(crate) struct KeptNames {
    functions: Vec<Named<'static>>,
    variables: Vec<Named<'static>>,
}

/// They are read once for a process, some 20 MB.
pub(crate) fn kept_names() -> &'static KeptNames {
    static KEPT: OnceLock<KeptNames> = OnceLock::new();
    KEPT.get_or_init(|| {
        let text: &'static str = KernelNames::open().text(boot().as_deref()).leak();
        KeptNames { functions: functions(text), variables: variables(text) }
    })
}

impl KeptNames {
    /// The function that an address lies in.
    pub(crate) fn function(&self, address: u64) -> Option<String> {
        symbol(&self.functions, address).and_then(|symbol| symbol.function)
    }

    /// The variable at an address, with how far behind its start that is.
    pub(crate) fn variable(&self, address: u64) -> Option<(String, u64)> {
        variable(&self.variables, address)
    }
}

fn functions(text: &str) -> Vec<Named<'_>> {
    named(text, &["t", "T", "w", "W"])
}

/// None where the kernel names only some of them.
fn variables(text: &str) -> Vec<Named<'_>> {
    let all = named(text, &["d", "D", "b", "B", "r", "R"]);
    if all.len() < FEW_VARIABLES { Vec::new() } else { all }
}

fn variable(variables: &[Named<'_>], address: u64) -> Option<(String, u64)> {
    before(variables, address).map(|(start, name, _)| (name.to_string(), address - start))
}

/// Address, name and module.
type Named<'a> = (u64, &'a str, Option<&'a str>);

/// Symbols of these kinds, by address.
fn named<'a>(text: &'a str, kinds: &[&str]) -> Vec<Named<'a>> {
    let mut named: Vec<_> = text.lines().filter_map(|line| of_kind(line, kinds)).collect();
    named.sort_by_key(|(address, ..)| *address);
    // Of several names of one address the first.
    named.dedup_by_key(|(address, ..)| *address);
    named
}

fn of_kind<'a>(line: &'a str, kinds: &[&str]) -> Option<Named<'a>> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
    let is_one = kinds.contains(&words.next()?);
    let name = words.next().filter(|_| is_one)?;
    Some((address, name, words.next()))
}

/// The last that begins there or before.
fn before<'a>(named: &[Named<'a>], address: u64) -> Option<Named<'a>> {
    named[..named.partition_point(|(start, ..)| *start <= address)].last().copied()
}

fn symbol(functions: &[Named<'_>], address: u64) -> Option<Symbol> {
    let (start, name, module) = before(functions, address)?;
    let offset = address - start;
    (offset < LONGEST_FUNCTION).then(|| Symbol {
        object: module.map(Into::into),
        function: Some(name.to_string()),
        offset: i64::try_from(offset).ok(),
        source: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_reaches_to_the_next_one() {
        let text = "0000000000000000 A per_cpu\nffffffff81000100 T second\nffffffff81000000 T first\nffffffff81000000 t also_first\n\
                    ffffffff81000080 D data\nffffffffc0001000 t ext4_write\t[ext4]\ngarbage\n";
        let functions = named(text, &["t", "T"]);
        let at =
            |address| symbol(&functions, address).map(|symbol| (symbol.function.unwrap(), symbol.offset.unwrap(), symbol.object));
        assert_eq!(at(0xffff_ffff_8100_00ff), Some(("first".into(), 0xff, None)));
        assert_eq!(at(0xffff_ffff_8100_0100), Some(("second".into(), 0, None)));
        assert_eq!(at(0xffff_ffff_c000_1008), Some(("ext4_write".into(), 8, Some("[ext4]".into()))));
        assert_eq!((at(0xffff_ffff_80ff_ffff), at(0xffff_ffff_d000_0000)), (None, None));
    }

    #[test]
    fn functions_of_this_kernel_have_names_until_it_is_started_again() {
        let addresses: Vec<u64> = fs::read_to_string(SYMBOLS)
            .unwrap()
            .lines()
            .filter_map(|line| of_kind(line, &["T"]))
            .take(1)
            .map(|line| line.0)
            .collect();
        let boot = boot();
        let named = |of: Option<&str>| KernelNames::open().symbols(&addresses, of).iter().flatten().count();
        // Without the right to see addresses there are none.
        assert_eq!(named(boot.as_deref()), addresses.len());
        let names = KernelNames::open();
        let twice = [(); 2].map(|()| names.symbols(&addresses, boot.as_deref()).iter().flatten().count());
        assert_eq!(twice, [addresses.len(); 2]);
        assert_eq!((named(None), named(Some("another"))), (0, 0));
    }
}
