//! Types as BTF describes them (docs.kernel.org/bpf/btf.html): those of an object that was just
//! compiled, for the build, and those of the running kernel and its modules, whose types continue
//! those of the kernel.

use std::rc::Rc;

const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const RESTRICT: u32 = 11;
const FUNCTION_TYPE: u32 = 13;
const VARIABLE: u32 = 14;
const DATA_SECTION: u32 = 15;
const DECLARATION_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;
const MAGIC: u32 = 0xeb9f;

/// A type.
#[derive(Clone, Debug)]
pub(crate) enum Type {
    /// An integer.
    Int { bytes: usize, signed: bool },
    /// An array of `number` elements of a type.
    Array { of: u32, number: usize },
    /// A structure: its name, and its members with their types and offsets [B].
    Struct { name: String, bytes: usize, members: Vec<(String, u32, usize)> },
    /// A union: as a structure, but the members begin near its start.
    Union { bytes: usize, members: Vec<(String, u32, usize)> },
    /// An enum: its name, and its names with their numbers.
    Enum { name: String, values: Vec<(String, u32)> },
    /// Another name of a type; or the type with a qualifier, without a name.
    Alias { name: String, of: u32 },
    /// A pointer to any type.
    Pointer,
    /// A type without a size.
    Other,
}

/// All types of an object, by their ids.
#[derive(Debug)]
pub(crate) struct Types {
    bytes: Vec<u8>,
    /// Offset of the strings.
    strings: usize,
    strings_bytes: usize,
    /// Offsets of the types; the first is that of `first_id`.
    starts: Vec<usize>,
    first_id: u32,
    /// The types whose ids and strings these continue.
    base: Option<Rc<Types>>,
}

impl Types {
    /// Parse an ELF section `.BTF`, or a file in /sys/kernel/btf. `None`: the bytes are not BTF.
    pub(crate) fn of(bytes: Vec<u8>, base: Option<Rc<Types>>) -> Option<Types> {
        let word = |at: usize| word(&bytes, at);
        let header =
            usize::try_from(word(4)?).ok().filter(|_| bytes.len() >= 4 && word(0).is_some_and(|it| it & 0xffff == MAGIC))?;
        let section = |at: usize| Some((header + word(at)? as usize, word(at + 4)? as usize));
        let ((types, types_bytes), (strings, strings_bytes)) = (section(8)?, section(16)?);
        let end = types.checked_add(types_bytes).filter(|end| *end <= bytes.len())?;
        // Type 0 is `void` and is not stored.
        let first_id = base.as_ref().map_or(1, |base| base.first_id + base.starts.len() as u32);
        let (mut starts, mut at) = (Vec::new(), types);
        while at < end {
            starts.push(at);
            at += length(word(at + 4)?)?;
        }
        Some(Types { strings, strings_bytes, starts, first_id, base, bytes })
    }

    /// Ids of its own types, without those of `base`.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        self.first_id..self.first_id + self.starts.len() as u32
    }

    /// The type with this id.
    pub(crate) fn get(&self, id: u32) -> Type {
        match (id.checked_sub(self.first_id), &self.base) {
            (None, Some(base)) => base.get(id),
            (index, _) => index.and_then(|index| self.read(*self.starts.get(index as usize)?)).unwrap_or(Type::Other),
        }
    }

    /// Ids of its own structures of this name.
    pub(crate) fn structures<'a>(&'a self, wanted: &'a str) -> impl Iterator<Item = u32> + use<'a> {
        self.ids().zip(&self.starts).filter_map(move |(id, at)| {
            let (name, info) = (word(&self.bytes, *at)?, word(&self.bytes, *at + 4)?);
            (kind(info) == STRUCT && self.text(name) == wanted.as_bytes()).then_some(id)
        })
    }

    fn text(&self, at: u32) -> &[u8] {
        match (&self.base, at as usize) {
            (Some(base), at) if at < base.all_strings() => base.text(at as u32),
            (base, at) => {
                let at = at - base.as_ref().map_or(0, |base| base.all_strings());
                let text = self.bytes.get(self.strings + at..).unwrap_or_default();
                text.split(|byte| *byte == 0).next().unwrap_or_default()
            }
        }
    }

    fn all_strings(&self) -> usize {
        self.strings_bytes + self.base.as_ref().map_or(0, |base| base.all_strings())
    }

    fn read(&self, at: usize) -> Option<Type> {
        let word = |index: usize| word(&self.bytes, at + 4 * index);
        let name = |at: u32| String::from_utf8_lossy(self.text(at)).into_owned();
        let (info, size) = (word(1)?, word(2)?);
        let bytes = size as usize;
        // For bit fields, the highest byte of the offset contains their length.
        let offset = |value: u32| (if info >> 31 == 0 { value } else { value & 0xff_ffff }) as usize / 8;
        let member = |index: usize| Some((name(word(3 + 3 * index)?), word(4 + 3 * index)?, offset(word(5 + 3 * index)?)));
        let members = || (0..entries(info)).map_while(member).collect();
        let value = |index: usize| Some((name(word(3 + 2 * index)?), word(4 + 2 * index)?));
        Some(match kind(info) {
            INT => Type::Int { bytes, signed: word(3)? >> 24 & 1 != 0 },
            ARRAY => Type::Array { of: word(3)?, number: word(5)? as usize },
            STRUCT => Type::Struct { name: name(word(0)?), bytes, members: members() },
            UNION => Type::Union { bytes, members: members() },
            ENUM => Type::Enum { name: name(word(0)?), values: (0..entries(info)).map_while(value).collect() },
            TYPEDEF => Type::Alias { name: name(word(0)?), of: size },
            VOLATILE..=RESTRICT | TYPE_TAG => Type::Alias { name: String::new(), of: size },
            POINTER => Type::Pointer,
            _ => Type::Other,
        })
    }
}

fn kind(info: u32) -> u32 {
    info >> 24 & 31
}

fn entries(info: u32) -> usize {
    (info & 0xffff) as usize
}

/// Length of a type's description [B]; `None`: the kind is unknown.
fn length(info: u32) -> Option<usize> {
    Some(match kind(info) {
        0 => return None,
        INT | VARIABLE | DECLARATION_TAG => 16,
        ARRAY => 24,
        STRUCT | UNION | DATA_SECTION | ENUM64 => 12 + 12 * entries(info),
        ENUM | FUNCTION_TYPE => 12 + 8 * entries(info),
        _ => 12,
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}
