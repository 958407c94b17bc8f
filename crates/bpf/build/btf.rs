//! Types as a compiled BPF object tells them: the section `.BTF` (docs.kernel.org/bpf/btf.html), as far as layouts of structures need it.

const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FUNCTION_TYPE: u32 = 13;
const VARIABLE: u32 = 14;
const DATA_SECTION: u32 = 15;
const DECLARATION_TAG: u32 = 17;
const ENUM64: u32 = 19;

/// A type.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// A number without a fraction.
    Int { bytes: usize, signed: bool },
    /// So many of a type.
    Array { of: u32, number: usize },
    /// Its name, and the members with their types and offsets [B].
    Struct { name: String, bytes: usize, members: Vec<(String, u32, usize)> },
    /// Its name, and names with their numbers.
    Enum { name: String, values: Vec<(String, u32)> },
    /// Nothing that stands in an event.
    Other,
}

/// All types of an object, by their ids.
#[derive(Debug)]
pub(crate) struct Types(Vec<Type>);

impl Types {
    /// Read an object of the compiler.
    pub(crate) fn of_object(object: &[u8]) -> Types {
        let btf = section(object, ".BTF");
        let word = |at: usize| number(btf, at, 4);
        let (header, types, types_bytes, strings) = (word(4), word(8), word(12), word(16));
        let text = |at: usize| nul_terminated(&btf[header + strings + at..]);
        let mut rest = &btf[header + types..header + types + types_bytes];
        let mut all = vec![Type::Other];
        while !rest.is_empty() {
            let (read, bytes) = read_type(rest, &text);
            all.push(read);
            rest = &rest[bytes..];
        }
        Types(all)
    }

    /// A type by its id.
    pub(crate) fn get(&self, id: u32) -> &Type {
        &self.0[id as usize]
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Type> {
        self.0.iter()
    }
}

/// The first type of these bytes, and how many bytes it takes.
fn read_type(bytes: &[u8], text: &impl Fn(usize) -> String) -> (Type, usize) {
    let word = |index: usize| number(bytes, 4 * index, 4);
    let (name, info, size) = (text(word(0)), word(1) as u32, word(2));
    let (kind, entries) = (info >> 24 & 31, (info & 0xffff) as usize);
    let entry = |index: usize, words: usize, place: usize| word(3 + index * words + place);
    match kind {
        INT => (Type::Int { bytes: size, signed: word(3) >> 24 & 1 != 0 }, 16),
        ARRAY => (Type::Array { of: word(3) as u32, number: word(5) }, 24),
        STRUCT => {
            let member = |index| (text(entry(index, 3, 0)), entry(index, 3, 1) as u32, entry(index, 3, 2) / 8);
            (Type::Struct { name, bytes: size, members: (0..entries).map(member).collect() }, 12 + 12 * entries)
        }
        ENUM => {
            let value = |index| (text(entry(index, 2, 0)), entry(index, 2, 1) as u32);
            (Type::Enum { name, values: (0..entries).map(value).collect() }, 12 + 8 * entries)
        }
        UNION | DATA_SECTION | ENUM64 => (Type::Other, 12 + 12 * entries),
        FUNCTION_TYPE => (Type::Other, 12 + 8 * entries),
        VARIABLE | DECLARATION_TAG => (Type::Other, 16),
        POINTER.. => (Type::Other, 12),
        0 => panic!("a type of kind 0 in .BTF"),
    }
}

/// A section of an ELF file for 64 bits, little-endian.
fn section<'a>(object: &'a [u8], wanted: &str) -> &'a [u8] {
    let (headers, size) = (number(object, 0x28, 8), number(object, 0x3a, 2));
    let (count, names) = (number(object, 0x3c, 2), number(object, 0x3e, 2));
    let bytes = |index: usize| {
        let header = headers + index * size;
        let (from, length) = (number(object, header + 0x18, 8), number(object, header + 0x20, 8));
        &object[from..from + length]
    };
    let name = |index: usize| nul_terminated(&bytes(names)[number(object, headers + index * size, 4)..]);
    let index = (1..count).find(|index| name(*index) == wanted);
    bytes(index.unwrap_or_else(|| panic!("the compiler wrote no section {wanted}")))
}

fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn nul_terminated(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
