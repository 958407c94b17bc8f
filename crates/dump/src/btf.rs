//! Types of the kernel (BTF), read from the dump: offsets of the members of its structures.
//!
//! Format: Documentation/bpf/btf.rst.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::format::u32_at;

const MAGIC: u32 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// Limit for the nesting of anonymous structures, arrays and typedefs.
const DEPTH: u32 = 32;

const INTEGER: u32 = 1;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
/// Kinds that only refer to another type: typedef, volatile, const, restrict, and tags.
const LEADING: [u32; 5] = [8, 9, 10, 11, 18];
const POINTER: u32 = 2;
const TYPEDEF: u32 = 8;
const FORWARD: u32 = 7;
const ENUM64: u32 = 19;

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Offset in the requested structure [B].
    pub(crate) offset: u64,
    /// Size of the whole member [B].
    pub(crate) size: usize,
    /// Bit fields only: the first bit, and the number of bits.
    pub(crate) bits: Option<(u32, u32)>,
    /// The number of its type.
    pub(crate) of_type: u32,
}

/// How to interpret the bytes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Unsigned,
    Signed,
    Truth,
    Pointer,
    /// An array of `char`.
    Text,
    /// One or several numbers or pointers: the size of each [B], and whether they are signed.
    Numbers(usize, bool),
    /// A structure, or an array of others: it has an address, but no value of its own.
    Place,
}

/// A member as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) field: Field,
    /// The type in C, for example `struct list_head`.
    pub(crate) type_name: String,
}

/// All types of a kernel, or those that a module adds.
#[derive(Debug, Default)]
pub(crate) struct Types {
    data: Vec<u8>,
    strings: usize,
    /// Offset of each type; the first of a kernel is `void`.
    starts: Vec<usize>,
    structures: FxHashMap<Vec<u8>, u32>,
    /// Modules only: the types of the kernel, whose numbers and text offsets are below those of the
    /// module.
    kernel: Option<Arc<Types>>,
    first: u32,
    first_text: u32,
}

impl Types {
    /// `None`: the data is no BTF.
    pub(crate) fn of(data: Vec<u8>) -> Option<Types> {
        Types { starts: vec![0], ..Types::default() }.read(data)
    }

    /// The types of a module, whose numbers begin with `first`, and its text offsets with
    /// `first_text`.
    pub(crate) fn of_module(kernel: &Arc<Types>, data: Vec<u8>, first: u32, first_text: u32) -> Option<Types> {
        Types { kernel: Some(kernel.clone()), first, first_text, ..Types::default() }.read(data)
    }

    fn read(self, data: Vec<u8>) -> Option<Types> {
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
        let mut types = Types { data, strings, ..self };
        while at + 12 <= end {
            let number = types.first.checked_add(u32::try_from(types.starts.len()).ok()?)?;
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
        let Some(own) = number.checked_sub(self.first) else {
            return self.kernel.as_ref().map_or(0, |kernel| kernel.word(number, at));
        };
        self.starts.get(own as usize).filter(|_| number > 0).map_or(0, |start| u32_at(&self.data, start + at))
    }

    fn kind(&self, number: u32) -> u32 {
        self.word(number, 4) >> 24 & 0x1f
    }

    fn count(&self, number: u32) -> usize {
        (self.word(number, 4) & 0xffff) as usize
    }

    fn name_at(&self, offset: u32) -> &[u8] {
        let Some(own) = offset.checked_sub(self.first_text) else {
            return self.kernel.as_ref().map_or(&[], |kernel| kernel.name_at(offset));
        };
        let rest = self.data.get(self.strings + own as usize..).unwrap_or_default();
        &rest[..rest.iter().position(|byte| *byte == 0).unwrap_or(0)]
    }

    /// The type behind typedefs and qualifiers.
    fn plain(&self, mut number: u32) -> u32 {
        for _ in 0..DEPTH {
            if !LEADING.contains(&self.kind(number)) {
                break;
            }
            number = self.word(number, 8);
        }
        number
    }

    /// Size of a type [B].
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

    /// Size of a structure or union [B].
    pub(crate) fn size_of(&self, structure: &str) -> Option<u64> {
        self.structures.get(structure.as_bytes()).map(|number| u64::from(self.word(*number, 8)))
    }

    /// A member, for example `se.sum_exec_runtime` of `task_struct`. Members of anonymous parts are
    /// members of the whole.
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
        for place in 0..self.count(structure) {
            let (own_name, field) = self.own_member(structure, place);
            if own_name.is_empty() {
                if let Some(inner) = self.member(self.plain(field.of_type), name, depth) {
                    return Some(Field { offset: field.offset + inner.offset, ..inner });
                }
            } else if own_name == name {
                return Some(Field { size: self.size(field.of_type, DEPTH), ..field });
            }
        }
        None
    }

    /// The member at an index of a structure, with its name. Its size is left out, because most
    /// members are only skipped.
    fn own_member(&self, structure: u32, place: usize) -> (&[u8], Field) {
        let at = 12 + 12 * place;
        let (name, of_type, offset) = (self.word(structure, at), self.word(structure, at + 4), self.word(structure, at + 8));
        let has_bits = self.word(structure, 4) >> 31 == 1;
        let (bit, width) = if has_bits { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
        let bits = (width > 0).then_some((bit % 8, width));
        (self.name_at(name), Field { offset: u64::from(bit / 8), size: 0, bits, of_type })
    }

    /// A structure or union by its name, including one that only a typedef names.
    pub(crate) fn structure(&self, name: &str) -> Option<u32> {
        let name = name.trim_start_matches("struct ").trim_start_matches("union ").as_bytes();
        let alias = |number: &u32| self.kind(*number) == TYPEDEF && self.name_at(self.word(*number, 0)) == name;
        let named = self.structures.get(name).copied();
        let own = self.first.max(1)..self.first + self.starts.len() as u32;
        let found = named.or_else(|| own.into_iter().find(alias).map(|number| self.plain(number)))?;
        matches!(self.kind(found), STRUCT | UNION).then_some(found)
    }

    /// Size of a structure [B].
    pub(crate) fn bytes_of(&self, structure: u32) -> u32 {
        self.word(structure, 8)
    }

    /// Structures and unions whose names begin with `start`, in alphabetical order.
    pub(crate) fn named(&self, start: &str) -> Vec<String> {
        let wanted = self.structures.keys().filter(|name| name.starts_with(start.as_bytes()));
        let mut found: Vec<String> = wanted.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        found.sort();
        found
    }

    /// A member of a structure, given by its type number.
    pub(crate) fn member_of(&self, structure: u32, name: &str) -> Option<Field> {
        self.member(self.plain(structure), name.as_bytes(), DEPTH)
    }

    /// An element of an array.
    pub(crate) fn element(&self, array: Field, place: u64) -> Option<Field> {
        let number = self.plain(array.of_type);
        if self.kind(number) != ARRAY {
            return None;
        }
        let of_type = self.word(number, 12);
        let size = self.size(of_type, DEPTH);
        let offset = place.checked_mul(size as u64)?.checked_add(array.offset)?;
        Some(Field { offset, size, bits: None, of_type })
    }

    /// The type that a pointer points to.
    pub(crate) fn pointed(&self, pointer: u32) -> Option<u32> {
        let number = self.plain(pointer);
        (self.kind(number) == POINTER).then(|| self.word(number, 8))
    }

    /// How to interpret the bytes of a member.
    pub(crate) fn shape(&self, field: Field) -> Shape {
        const SIGNED: u32 = 1;
        const TRUTH: u32 = 4;
        let number = self.plain(field.of_type);
        match self.kind(number) {
            INTEGER => match self.word(number, 12) >> 24 & 7 {
                found if found & TRUTH != 0 => Shape::Truth,
                found if found & SIGNED != 0 => Shape::Signed,
                _ => Shape::Unsigned,
            },
            ENUM | ENUM64 if self.word(number, 4) >> 31 == 1 => Shape::Signed,
            ENUM | ENUM64 => Shape::Unsigned,
            POINTER => Shape::Pointer,
            ARRAY => self.shape_of_array(number),
            _ => Shape::Place,
        }
    }

    fn shape_of_array(&self, array: u32) -> Shape {
        let element = self.word(array, 12);
        let plain = self.plain(element);
        if self.kind(plain) == INTEGER && self.name_at(self.word(plain, 0)) == b"char" {
            return Shape::Text;
        }
        let field = Field { offset: 0, size: self.size(element, DEPTH), bits: None, of_type: element };
        match self.shape(field) {
            Shape::Signed => Shape::Numbers(field.size, true),
            Shape::Unsigned | Shape::Truth | Shape::Pointer => Shape::Numbers(field.size, false),
            _ => Shape::Place,
        }
    }

    /// The name of a type in C.
    pub(crate) fn type_name(&self, number: u32) -> String {
        self.name_of(number, DEPTH)
    }

    fn name_of(&self, number: u32, depth: u32) -> String {
        let Some(depth) = depth.checked_sub(1) else { return "...".into() };
        let own = String::from_utf8_lossy(self.name_at(self.word(number, 0)));
        let own = if own.is_empty() { "{...}".into() } else { own };
        match self.kind(number) {
            0 => "void".into(),
            POINTER => format!("{} *", self.name_of(self.word(number, 8), depth)),
            ARRAY => format!("{}[{}]", self.name_of(self.word(number, 12), depth), self.word(number, 20)),
            STRUCT => format!("struct {own}"),
            UNION => format!("union {own}"),
            FORWARD => format!("struct {own}"),
            ENUM | ENUM64 => format!("enum {own}"),
            9..=11 | 18 => self.name_of(self.word(number, 8), depth),
            13 => "function".into(),
            _ => own.into_owned(),
        }
    }

    /// All members of a structure in order, including those of anonymous parts.
    pub(crate) fn members(&self, structure: u32) -> Vec<Named> {
        let mut found = Vec::new();
        self.add_members(structure, 0, &mut found, DEPTH);
        found
    }

    fn add_members(&self, structure: u32, start: u64, found: &mut Vec<Named>, depth: u32) {
        let structure = self.plain(structure);
        if depth == 0 || !matches!(self.kind(structure), STRUCT | UNION) {
            return;
        }
        for place in 0..self.count(structure) {
            let (name, field) = self.own_member(structure, place);
            let field = Field { offset: start + field.offset, ..field };
            if name.is_empty() {
                self.add_members(field.of_type, field.offset, found, depth - 1);
            } else {
                let name = String::from_utf8_lossy(name).into_owned();
                let field = Field { size: self.size(field.of_type, DEPTH), ..field };
                found.push(Named { name, field, type_name: self.type_name(field.of_type) });
            }
        }
    }

    /// The names and values of an enumeration of 32-bit numbers.
    pub(crate) fn enumerators(&self, enumeration: &str) -> Vec<(String, u32)> {
        let wanted = |number: &u32| self.kind(*number) == ENUM && self.name_at(self.word(*number, 0)) == enumeration.as_bytes();
        let Some(number) = (1..self.starts.len() as u32).find(wanted) else { return Vec::new() };
        let name = |at| String::from_utf8_lossy(self.name_at(self.word(number, at))).into_owned();
        (0..self.count(number)).map(|place| (name(12 + 8 * place), self.word(number, 16 + 8 * place))).collect()
    }

    /// Size of an element of an array [B].
    pub(crate) fn element_size(&self, array: &Field) -> usize {
        let number = self.plain(array.of_type);
        if self.kind(number) == ARRAY { self.size(self.word(number, 12), DEPTH) } else { 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }
}
