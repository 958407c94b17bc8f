//! Functions of the kernel by their addresses, as /proc/kallsyms has them (proc(5)): a line has address, kind, name, and where it is in a
//! module that in brackets. Addresses differ with each start of the machine, and are shown to those only who may see them.

use std::{
    fs::{self, File},
    io::Read,
};

use crate::stacks::symbols::Symbol;

const SYMBOLS: &str = "/proc/kallsyms";
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Further behind the start of a function is none of its code.
const LONGEST_FUNCTION: u64 = 1 << 20;

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
        let is_this = of_boot.is_some() && boot().as_deref() == of_boot;
        let mut text = String::new();
        if let Some(mut file) = self.0.as_ref().filter(|_| is_this)
            && file.read_to_string(&mut text).is_err()
        {
            text.clear();
        }
        let functions = functions(&text);
        addresses.iter().map(|address| symbol(&functions, *address).into_iter().collect()).collect()
    }
}

/// Address, name and module, by address.
fn functions(text: &str) -> Vec<(u64, &str, Option<&str>)> {
    let mut functions: Vec<_> = text.lines().filter_map(function).collect();
    functions.sort_by_key(|(address, ..)| *address);
    // Of several names of one address the first.
    functions.dedup_by_key(|(address, ..)| *address);
    functions
}

fn function(line: &str) -> Option<(u64, &str, Option<&str>)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
    let is_code = matches!(words.next()?, "t" | "T" | "w" | "W");
    let name = words.next().filter(|_| is_code)?;
    Some((address, name, words.next()))
}

fn symbol(functions: &[(u64, &str, Option<&str>)], address: u64) -> Option<Symbol> {
    let behind = functions.partition_point(|(start, ..)| *start <= address);
    let (start, name, module) = functions[..behind].last()?;
    let offset = address - start;
    (offset < LONGEST_FUNCTION).then(|| Symbol {
        object: module.map(Into::into),
        function: Some((*name).to_string()),
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
        let functions = functions(text);
        let at =
            |address| symbol(&functions, address).map(|symbol| (symbol.function.unwrap(), symbol.offset.unwrap(), symbol.object));
        assert_eq!(at(0xffff_ffff_8100_00ff), Some(("first".into(), 0xff, None)));
        assert_eq!(at(0xffff_ffff_8100_0100), Some(("second".into(), 0, None)));
        assert_eq!(at(0xffff_ffff_c000_1008), Some(("ext4_write".into(), 8, Some("[ext4]".into()))));
        assert_eq!((at(0xffff_ffff_80ff_ffff), at(0xffff_ffff_d000_0000)), (None, None));
    }

    #[test]
    fn functions_of_this_kernel_have_names_until_it_is_started_again() {
        let addresses: Vec<u64> =
            fs::read_to_string(SYMBOLS).unwrap().lines().filter_map(function).take(1).map(|line| line.0).collect();
        let boot = boot();
        let named = |of: Option<&str>| KernelNames::open().symbols(&addresses, of).iter().flatten().count();
        // Without the right to see addresses there are none.
        assert_eq!(named(boot.as_deref()), addresses.len());
        assert_eq!((named(None), named(Some("another"))), (0, 0));
    }
}
