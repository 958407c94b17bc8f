//! Types as BTF describes them (docs.kernel.org/bpf/btf.html): those of a kernel, from its memory or
//! its files, those that its modules add, and those of an object that was just compiled.
//!
//! What lies beyond the end of the data counts as 0, and what is nested too deep as empty: damaged
//! types have wrong members, but each question ends.

use std::sync::Arc;

use rustc_hash::FxHashMap;

const MAGIC: u32 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// Limit for the nesting of anonymous structures, arrays and typedefs.
const DEPTH: u32 = 32;

const INTEGER: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
/// Kinds that only refer to another type: typedef, volatile, const, restrict, and tags.
const LEADING: [u32; 5] = [8, 9, 10, 11, 18];
const FORWARD: u32 = 7;
const TYPEDEF: u32 = 8;
const ENUM64: u32 = 19;
/// Flags of integers.
const SIGNED: u32 = 1;
const TRUTH: u32 = 4;

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Offset in the requested structure [B].
    pub offset: u64,
    /// Size of the whole member [B].
    pub size: usize,
    /// Bit fields only: the first bit, and the number of bits.
    pub bits: Option<(u32, u32)>,
    /// The number of its type.
    pub of_type: u32,
}

/// What a type is made of. Other types are given by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Integer {
        signed: bool,
    },
    Array {
        of: u32,
        number: usize,
    },
    Struct,
    Union,
    /// An enumeration of 32-bit numbers.
    Enum,
    /// A typedef, or the type with a qualifier.
    Alias {
        of: u32,
    },
    Other,
}

/// How to interpret the bytes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
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
pub struct Named {
    pub name: String,
    pub field: Field,
    /// The type in C, for example `struct list_head`.
    pub type_name: String,
}

/// All types of a kernel or object, or those that a module adds, by their numbers.
#[derive(Debug, Default)]
pub struct Types {
    data: Vec<u8>,
    strings: usize,
    strings_bytes: u32,
    /// Offset of each type; the first of a kernel is `void`.
    starts: Vec<usize>,
    structures: FxHashMap<Vec<u8>, u32>,
    /// Modules only: the types of the kernel, whose numbers and text offsets are below those of the
    /// module.
    base: Option<Arc<Types>>,
    first: u32,
    first_text: u32,
}

impl Types {
    /// Parse an ELF section `.BTF`, a file in /sys/kernel/btf, or what the kernel keeps of one.
    /// `base`: the types that these continue. `None`: the data is no BTF.
    #[must_use]
    pub fn of(data: Vec<u8>, base: Option<Arc<Types>>) -> Option<Types> {
        let (first, first_text, starts) = match &base {
            Some(base) => {
                let first = base.first.checked_add(u32::try_from(base.starts.len()).ok()?)?;
                (first, base.first_text.checked_add(base.strings_bytes)?, Vec::new())
            }
            None => (0, 0, vec![0]),
        };
        Types { first, first_text, starts, base, ..Types::default() }.read(data)
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
        let strings_bytes = u32_at(&data, 20);
        if end > data.len() || strings.checked_add(strings_bytes as usize)? > data.len() {
            return None;
        }
        let mut types = Types { data, strings, strings_bytes, ..self };
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

    /// Numbers of its own types, without those that these continue.
    pub fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        self.first.max(1)..self.first + self.starts.len() as u32
    }

    /// What a type is made of.
    #[must_use]
    pub fn get(&self, number: u32) -> Type {
        match self.kind(number) {
            INTEGER => Type::Integer { signed: self.word(number, 12) >> 24 & SIGNED != 0 },
            ARRAY => Type::Array { of: self.word(number, 12), number: self.word(number, 20) as usize },
            STRUCT => Type::Struct,
            UNION => Type::Union,
            ENUM => Type::Enum,
            kind if LEADING.contains(&kind) => Type::Alias { of: self.word(number, 8) },
            _ => Type::Other,
        }
    }

    /// The name of a type; empty: it has none.
    #[must_use]
    pub fn name(&self, number: u32) -> &[u8] {
        self.name_at(self.word(number, 0))
    }

    /// Its own structures of this name, of which there may be several.
    pub fn structures<'a>(&'a self, name: &'a str) -> impl Iterator<Item = u32> + use<'a> {
        self.ids().filter(move |number| self.kind(*number) == STRUCT && self.name(*number) == name.as_bytes())
    }

    /// The members of a structure or union as declared, with their names; those of anonymous parts
    /// have none. Their sizes are left out.
    pub fn parts(&self, structure: u32) -> impl Iterator<Item = (&[u8], Field)> {
        (0..self.count(structure)).map(move |place| self.own_member(structure, place))
    }

    fn word(&self, number: u32, at: usize) -> u32 {
        let Some(own) = number.checked_sub(self.first) else {
            return self.base.as_ref().map_or(0, |base| base.word(number, at));
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
            return self.base.as_ref().map_or(&[], |base| base.name_at(offset));
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

    /// Size of a type [B]; 0: it has none.
    #[must_use]
    pub fn size(&self, number: u32) -> usize {
        self.size_within(number, DEPTH)
    }

    fn size_within(&self, number: u32, depth: u32) -> usize {
        let number = self.plain(number);
        match self.kind(number) {
            _ if depth == 0 => 0,
            POINTER => 8,
            ARRAY => {
                let elements = self.word(number, 20) as usize;
                self.size_within(self.word(number, 12), depth - 1).saturating_mul(elements)
            }
            0 | 7 | 12 | 13 => 0,
            _ => self.word(number, 8) as usize,
        }
    }

    /// Size of a structure or union [B].
    #[must_use]
    pub fn size_of(&self, structure: &str) -> Option<u64> {
        self.structures.get(structure.as_bytes()).map(|number| u64::from(self.word(*number, 8)))
    }

    /// A member, for example `se.sum_exec_runtime` of `task_struct`. Members of anonymous parts are
    /// members of the whole.
    #[must_use]
    pub fn field(&self, structure: &str, path: &str) -> Option<Field> {
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
        for (own_name, field) in self.parts(structure) {
            if own_name.is_empty() {
                if let Some(inner) = self.member(self.plain(field.of_type), name, depth) {
                    return Some(Field { offset: field.offset + inner.offset, ..inner });
                }
            } else if own_name == name {
                return Some(Field { size: self.size(field.of_type), ..field });
            }
        }
        None
    }

    /// The member at an index of a structure, with its name; without its size, because most members
    /// are only skipped.
    fn own_member(&self, structure: u32, place: usize) -> (&[u8], Field) {
        let at = 12 + 12 * place;
        let (name, of_type, offset) = (self.word(structure, at), self.word(structure, at + 4), self.word(structure, at + 8));
        let has_bits = self.word(structure, 4) >> 31 == 1;
        let (bit, width) = if has_bits { (offset & 0xff_ffff, offset >> 24) } else { (offset, 0) };
        let bits = (width > 0).then_some((bit % 8, width));
        (self.name_at(name), Field { offset: u64::from(bit / 8), size: 0, bits, of_type })
    }

    /// A structure or union by its name, including one that only a typedef names.
    #[must_use]
    pub fn structure(&self, name: &str) -> Option<u32> {
        let name = name.trim_start_matches("struct ").trim_start_matches("union ").as_bytes();
        let alias = |number: &u32| self.kind(*number) == TYPEDEF && self.name(*number) == name;
        let named = self.structures.get(name).copied();
        let found = named.or_else(|| self.ids().find(alias).map(|number| self.plain(number)))?;
        matches!(self.kind(found), STRUCT | UNION).then_some(found)
    }

    /// Structures and unions whose names begin with `start`, in alphabetical order.
    #[must_use]
    pub fn named(&self, start: &str) -> Vec<String> {
        let wanted = self.structures.keys().filter(|name| name.starts_with(start.as_bytes()));
        let mut found: Vec<String> = wanted.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        found.sort();
        found
    }

    /// A member of a structure, given by its type number.
    #[must_use]
    pub fn member_of(&self, structure: u32, name: &str) -> Option<Field> {
        self.member(self.plain(structure), name.as_bytes(), DEPTH)
    }

    /// An element of an array.
    #[must_use]
    pub fn element(&self, array: Field, place: u64) -> Option<Field> {
        let number = self.plain(array.of_type);
        if self.kind(number) != ARRAY {
            return None;
        }
        let of_type = self.word(number, 12);
        let size = self.size(of_type);
        let offset = place.checked_mul(size as u64)?.checked_add(array.offset)?;
        Some(Field { offset, size, bits: None, of_type })
    }

    /// The type that a pointer points to.
    #[must_use]
    pub fn pointed(&self, pointer: u32) -> Option<u32> {
        let number = self.plain(pointer);
        (self.kind(number) == POINTER).then(|| self.word(number, 8))
    }

    /// How to interpret the bytes of a member.
    #[must_use]
    pub fn shape(&self, field: Field) -> Shape {
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
        if self.kind(plain) == INTEGER && self.name(plain) == b"char" {
            return Shape::Text;
        }
        let field = Field { offset: 0, size: self.size(element), bits: None, of_type: element };
        match self.shape(field) {
            Shape::Signed => Shape::Numbers(field.size, true),
            Shape::Unsigned | Shape::Truth | Shape::Pointer => Shape::Numbers(field.size, false),
            _ => Shape::Place,
        }
    }

    /// The name of a type in C.
    #[must_use]
    pub fn type_name(&self, number: u32) -> String {
        self.name_of(number, DEPTH)
    }

    fn name_of(&self, number: u32, depth: u32) -> String {
        let Some(depth) = depth.checked_sub(1) else { return "...".into() };
        let own = String::from_utf8_lossy(self.name(number));
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
    #[must_use]
    pub fn members(&self, structure: u32) -> Vec<Named> {
        let mut found = Vec::new();
        self.add_members(structure, 0, &mut found, DEPTH);
        found
    }

    fn add_members(&self, structure: u32, start: u64, found: &mut Vec<Named>, depth: u32) {
        let structure = self.plain(structure);
        if depth == 0 || !matches!(self.kind(structure), STRUCT | UNION) {
            return;
        }
        for (name, field) in self.parts(structure) {
            let field = Field { offset: start + field.offset, ..field };
            if name.is_empty() {
                self.add_members(field.of_type, field.offset, found, depth - 1);
            } else {
                let name = String::from_utf8_lossy(name).into_owned();
                let field = Field { size: self.size(field.of_type), ..field };
                found.push(Named { name, field, type_name: self.type_name(field.of_type) });
            }
        }
    }

    /// The names and values of an enumeration of 32-bit numbers, given by its name.
    #[must_use]
    pub fn enumerators(&self, enumeration: &str) -> Vec<(String, u32)> {
        let wanted = |number: &u32| self.kind(*number) == ENUM && self.name(*number) == enumeration.as_bytes();
        self.ids().find(wanted).map(|number| self.values(number)).unwrap_or_default()
    }

    /// The names and values of an enumeration of 32-bit numbers.
    #[must_use]
    pub fn values(&self, enumeration: u32) -> Vec<(String, u32)> {
        let name = |at| String::from_utf8_lossy(self.name_at(self.word(enumeration, at))).into_owned();
        let value = |place| (name(12 + 8 * place), self.word(enumeration, 16 + 8 * place));
        (0..self.count(enumeration)).map(value).collect()
    }

    /// Size of an element of an array [B].
    #[must_use]
    pub fn element_size(&self, array: &Field) -> usize {
        let number = self.plain(array.of_type);
        if self.kind(number) == ARRAY { self.size(self.word(number, 12)) } else { 0 }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |four| u32::from_le_bytes(*four))
}
