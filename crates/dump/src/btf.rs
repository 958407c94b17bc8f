//! Types of the kernel (BTF), read out of the dump: where the members of its structures lie.
//!
//! Format: Documentation/bpf/btf.rst.

use rustc_hash::FxHashMap;

use crate::format::u32_at;

const MAGIC: u32 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// How deep structures without names, arrays and typedefs may lie in each other.
const DEPTH: u32 = 32;

const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
/// Kinds that only lead to another type: typedef, volatile, const, restrict, and tags.
const LEADING: [u32; 5] = [8, 9, 10, 11, 18];
const POINTER: u32 = 2;

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// From the begin of the structure that was asked for [B].
    pub(crate) offset: u64,
    /// Of the whole member [B].
    pub(crate) size: usize,
    /// Of a bit field: its first bit and how many it has.
    pub(crate) bits: Option<(u32, u32)>,
    /// The number of its type.
    pub(crate) of_type: u32,
}

/// All types of a kernel.
#[derive(Debug, Default)]
pub(crate) struct Types {
    data: Vec<u8>,
    strings: usize,
    /// Where each type begins; the first is `void`.
    starts: Vec<usize>,
    structures: FxHashMap<Vec<u8>, u32>,
}

impl Types {
    /// `None`: this is no BTF.
    pub(crate) fn of(data: Vec<u8>) -> Option<Types> {
        let magic = u32_at(&data, 0) & 0xffff;
        let header = u32_at(&data, 4) as usize;
        if magic != MAGIC || header < HEADER_BYTES {
            return None;
        }
        let place = |at: usize| header.checked_add(u32_at(&data, at) as usize);
        let (mut at, strings) = (place(8)?, place(16)?);
        let end = at.checked_add(u32_at(&data, 12) as usize)?;
        if end > data.len() || strings.checked_add(u32_at(&data, 20) as usize)? > data.len() {
            return None;
        }
        let mut types = Types { data, strings, starts: vec![0], structures: FxHashMap::default() };
        while at + 12 <= end {
            let number = u32::try_from(types.starts.len()).ok()?;
            types.starts.push(at);
            let (kind, count) = (types.kind(number), types.count(number));
            if matches!(kind, STRUCT | UNION) {
                let name = types.name_at(u32_at(&types.data, at));
                if !name.is_empty() {
                    let name = name.to_vec();
                    types.structures.entry(name).or_insert(number);
                }
            }
            at += 12
                + match kind {
                    1 | 14 | 17 => 4,
                    ARRAY => 12,
                    STRUCT | UNION | 15 | 19 => 12 * count,
                    ENUM | 13 => 8 * count,
                    _ => 0,
                };
        }
        Some(types)
    }

    fn word(&self, number: u32, at: usize) -> u32 {
        self.starts.get(number as usize).filter(|_| number > 0).map_or(0, |start| u32_at(&self.data, start + at))
    }

    fn kind(&self, number: u32) -> u32 {
        self.word(number, 4) >> 24 & 0x1f
    }

    fn count(&self, number: u32) -> usize {
        (self.word(number, 4) & 0xffff) as usize
    }

    fn name_at(&self, offset: u32) -> &[u8] {
        let rest = self.data.get(self.strings + offset as usize..).unwrap_or_default();
        &rest[..rest.iter().position(|byte| *byte == 0).unwrap_or(0)]
    }

    /// The type that typedefs and qualifiers lead to.
    fn plain(&self, mut number: u32) -> u32 {
        for _ in 0..DEPTH {
            if !LEADING.contains(&self.kind(number)) {
                break;
            }
            number = self.word(number, 8);
        }
        number
    }

    /// How many bytes a type has.
    fn size(&self, number: u32, depth: u32) -> usize {
        let number = self.plain(number);
        match self.kind(number) {
            _ if depth == 0 => 0,
            POINTER => 8,
            ARRAY => {
                let elements = self.word(number, 20) as usize;
                self.size(self.word(number, 12), depth - 1).saturating_mul(elements)
            }
            0 | 7 | 12 | 13 => 0,
            _ => self.word(number, 8) as usize,
        }
    }

    /// How many bytes a structure or union has.
    pub(crate) fn size_of(&self, structure: &str) -> Option<u64> {
        self.structures.get(structure.as_bytes()).map(|number| u64::from(self.word(*number, 8)))
    }

    /// A member, such as `se.sum_exec_runtime` of `task_struct`; members of parts without names are members of the whole.
    pub(crate) fn field(&self, structure: &str, path: &str) -> Option<Field> {
        let mut number = *self.structures.get(structure.as_bytes())?;
        let mut found = Field { offset: 0, size: 0, bits: None, of_type: number };
        for name in path.split('.') {
            let member = self.member(self.plain(number), name.as_bytes(), DEPTH)?;
            found = Field { offset: found.offset + member.offset, ..member };
            number = member.of_type;
        }
        Some(found)
    }

    fn member(&self, structure: u32, name: &[u8], depth: u32) -> Option<Field> {
        let depth = depth.checked_sub(1)?;
        if !matches!(self.kind(structure), STRUCT | UNION) {
            return None;
        }
        let has_bits = self.word(structure, 4) >> 31 == 1;
        for place in 0..self.count(structure) {
            let at = 12 + 12 * place;
            let (own_name, of_type, offset) =
                (self.word(structure, at), self.word(structure, at + 4), self.word(structure, at + 8));
            let (bit, width) = if has_bits { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
            let start = u64::from(bit / 8);
            if own_name == 0 {
                if let Some(inner) = self.member(self.plain(of_type), name, depth) {
                    return Some(Field { offset: start + inner.offset, ..inner });
                }
            } else if self.name_at(own_name) == name {
                let bits = (width > 0).then_some((bit % 8, width));
                return Some(Field { offset: start, size: self.size(of_type, DEPTH), bits, of_type });
            }
        }
        None
    }

    /// The names and values of an enumeration of small numbers.
    pub(crate) fn enumerators(&self, enumeration: &str) -> Vec<(String, u32)> {
        let wanted = |number: &u32| self.kind(*number) == ENUM && self.name_at(self.word(*number, 0)) == enumeration.as_bytes();
        let Some(number) = (1..self.starts.len() as u32).find(wanted) else { return Vec::new() };
        let name = |at| String::from_utf8_lossy(self.name_at(self.word(number, at))).into_owned();
        (0..self.count(number)).map(|place| (name(12 + 8 * place), self.word(number, 16 + 8 * place))).collect()
    }

    /// How many bytes an element of an array has.
    pub(crate) fn element_size(&self, array: &Field) -> usize {
        let number = self.plain(array.of_type);
        if self.kind(number) == ARRAY { self.size(self.word(number, 12), DEPTH) } else { 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }
}
