//! Names for addresses: the kernel's own table (kallsyms), read from the dump.
//!
//! Layout: `scripts/kallsyms.c` and `kernel/kallsyms.c`. Names are strings of tokens. Addresses are
//! offsets; some are negative if only these are relative (CONFIG_KALLSYMS_ABSOLUTE_PERCPU, until
//! 6.15), else all are relative.

use crate::{
    error::Fault,
    format::{u16_at, u32_at},
    memory::Memory,
    vmcoreinfo::VmCoreInfo,
};

/// More symbols than any kernel has.
const MOST: u32 = 4_000_000;

/// Symbols ordered by address.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    symbols: Vec<Symbol>,
    /// All names, one after another.
    names: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Symbol {
    address: u64,
    name: u32,
    length: u16,
    kind: u8,
}

impl Symbols {
    /// # Errors
    /// A [`Fault`]: not all of the table is in the dump; or the kernel does not say where it is (before 6.0).
    pub(crate) fn read(memory: &Memory, info: &VmCoreInfo) -> Result<Symbols, Fault> {
        let place = |name: &str| info.symbol(name).ok_or(Fault::NoType);
        let count = memory.u32(place("kallsyms_num_syms")?)?;
        if count > MOST {
            return Err(Fault::TooLong);
        }
        let (names, tokens) = (place("kallsyms_names")?, place("kallsyms_token_table")?);
        let offsets = memory.bytes(place("kallsyms_offsets")?, u64::from(count) * 4)?;
        let base = memory.u64(place("kallsyms_relative_base")?)?;
        let index = memory.bytes(place("kallsyms_token_index")?, 512)?;
        let index: Vec<usize> = index.chunks_exact(2).map(|two| usize::from(u16_at(two, 0))).collect();
        // Tokens end before their index begins, or some way after the last of them.
        let tokens = memory.bytes(tokens, *index.iter().max().unwrap_or(&0) as u64 + 64)?;
        let mut found = Symbols::default();
        let packed = Packed { memory, address: names, bytes: Vec::new(), at: 0 };
        found.decode(packed, count, &Tokens { tokens: &tokens, index: &index })?;
        found.place(&offsets, base, place("_stext")?);
        Ok(found)
    }

    fn decode(&mut self, mut packed: Packed<'_>, count: u32, tokens: &Tokens<'_>) -> Result<(), Fault> {
        for _ in 0..count {
            let first = usize::from(packed.byte()?);
            let length = if first & 0x80 == 0 { first } else { first & 0x7f | usize::from(packed.byte()?) << 7 };
            let start = self.names.len();
            for _ in 0..length {
                self.names.extend_from_slice(tokens.of(packed.byte()?));
            }
            // The first letter is the kind.
            let kind = self.names.get(start).copied().unwrap_or(b'?');
            let name_length = (self.names.len() - start).saturating_sub(1);
            let (name, length) = (u32::try_from(start + 1), u16::try_from(name_length));
            let (Ok(name), Ok(length)) = (name, length) else { return Err(Fault::TooLong) };
            self.symbols.push(Symbol { address: 0, name, length, kind });
        }
        Ok(())
    }

    /// Set the addresses of the symbols.
    fn place(&mut self, offsets: &[u8], base: u64, text_start: u64) {
        let offsets = offsets.chunks_exact(4).map(|four| u32_at(four, 0).cast_signed());
        let with_absolute = |offset: i32| {
            if offset >= 0 {
                u64::from(offset.cast_unsigned())
            } else {
                base.wrapping_sub(1).wrapping_sub(i64::from(offset).cast_unsigned())
            }
        };
        let all_relative = |offset: i32| base.wrapping_add(u64::from(offset.cast_unsigned()));
        let known = self.symbols.iter().position(|symbol| self.name_of(symbol) == b"_stext");
        let is_relative = known.and_then(|at| offsets.clone().nth(at)).is_some_and(|offset| all_relative(offset) == text_start);
        for (symbol, offset) in self.symbols.iter_mut().zip(offsets) {
            symbol.address = if is_relative { all_relative(offset) } else { with_absolute(offset) };
        }
        // Stable: of several names at one address the first stays the first.
        self.symbols.sort_by_key(|symbol| symbol.address);
    }

    fn name_of(&self, symbol: &Symbol) -> &[u8] {
        self.names.get(symbol.name as usize..symbol.name as usize + usize::from(symbol.length)).unwrap_or_default()
    }

    /// The address of a symbol.
    pub(crate) fn address(&self, name: &str) -> Option<u64> {
        let wanted = |symbol: &&Symbol| usize::from(symbol.length) == name.len() && self.name_of(symbol) == name.as_bytes();
        self.symbols.iter().find(wanted).map(|symbol| symbol.address)
    }

    /// The function that contains an address, and the offset in it.
    pub(crate) fn function(&self, address: u64) -> Option<(&str, u64)> {
        let end = self.symbols.partition_point(|symbol| symbol.address <= address);
        let until = self.symbols.get(..end)?;
        let last = until.last()?;
        let first = until.partition_point(|symbol| symbol.address < last.address);
        let symbol = until.iter().skip(first).find(|symbol| matches!(symbol.kind, b't' | b'T' | b'w' | b'W'))?;
        Some((std::str::from_utf8(self.name_of(symbol)).ok()?, address - symbol.address))
    }

    /// All symbols, one per line, in the form of /proc/kallsyms.
    pub(crate) fn lines(&self) -> String {
        let line = |symbol: &Symbol| {
            let name = String::from_utf8_lossy(self.name_of(symbol));
            format!("{:016x} {} {name}\n", symbol.address, char::from(symbol.kind))
        };
        self.symbols.iter().map(line).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.symbols.len()
    }
}

struct Tokens<'t> {
    tokens: &'t [u8],
    index: &'t [usize],
}

impl Tokens<'_> {
    fn of(&self, number: u8) -> &[u8] {
        let rest = self.index.get(usize::from(number)).and_then(|at| self.tokens.get(*at..)).unwrap_or_default();
        rest.iter().position(|byte| *byte == 0).and_then(|end| rest.get(..end)).unwrap_or_default()
    }
}

/// Compressed names, read some pages at a time.
struct Packed<'m> {
    memory: &'m Memory,
    address: u64,
    bytes: Vec<u8>,
    at: usize,
}

impl Packed<'_> {
    fn byte(&mut self) -> Result<u8, Fault> {
        if self.at == self.bytes.len() {
            let length = 4096 - self.address % 4096;
            self.bytes = self.memory.bytes(self.address, length)?;
            self.address += length;
            self.at = 0;
        }
        let byte = self.bytes.get(self.at).copied().ok_or(Fault::Damaged);
        self.at += 1;
        byte
    }
}
