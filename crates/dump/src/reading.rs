//! Members of any structure by name, for users who explore a dump.
//!
//! A path is written as in C: `se.sum_exec_runtime`, `mm->total_vm`, `rss_stat[0].count`.

use serde_json::Value;
use sysdock_symbols::btf::{Field, Shape, Types};

use crate::{
    error::{Fault, Unanswered},
    kernel::Kernel,
};

/// Limit for the elements of an array that are shown. Single elements can be requested.
const MOST_ELEMENTS: usize = 4096;

/// The way from a structure to a member of it, or of one that it points to.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// Offset of the pointer to the next structure, in each structure on the way.
    pointers: Vec<u64>,
    last: Field,
    shape: Shape,
}

/// A path while it is parsed.
struct Way<'t> {
    types: &'t Types,
    pointers: Vec<u64>,
    last: Field,
}

impl Way<'_> {
    fn enter_member(&mut self, name: &str) -> Result<(), Unanswered> {
        let inner = self.types.member_of(self.last.of_type, name).ok_or_else(|| {
            let type_name = self.types.type_name(self.last.of_type);
            if self.types.pointed(self.last.of_type).is_some() {
                Unanswered::MemberOfPointer { type_name, member: name.into() }
            } else {
                Unanswered::NoMemberOfType { type_name, member: name.into() }
            }
        })?;
        self.last = Field { offset: self.last.offset + inner.offset, ..inner };
        Ok(())
    }

    fn follow(&mut self) -> Result<(), Unanswered> {
        let of_type = self
            .types
            .pointed(self.last.of_type)
            .ok_or_else(|| Unanswered::NoPointer(self.types.type_name(self.last.of_type)))?;
        self.pointers.push(self.last.offset);
        self.last = Field { offset: 0, size: 0, bits: None, of_type };
        Ok(())
    }

    fn enter_element(&mut self, place: &str) -> Result<(), Unanswered> {
        let place: u64 = place.parse().map_err(|_| Unanswered::NoElementNumber(place.into()))?;
        let array = self.types.type_name(self.last.of_type);
        self.last = self.types.element(self.last, place).ok_or_else(|| Unanswered::NoArray(array))?;
        Ok(())
    }
}

impl Kernel {
    /// Find a member. The error is about the path.
    pub(crate) fn path(&self, structure: &str, text: &str) -> Result<Path, Unanswered> {
        let types = self.types_with(structure).ok_or_else(|| Unanswered::NoStructure(structure.into()))?;
        let of_type = types.structure(structure).unwrap_or_default();
        let mut way = Way { types, pointers: Vec::new(), last: Field { offset: 0, size: 0, bits: None, of_type } };
        let mut rest = text;
        let mut is_start = true;
        while is_start || !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (place, later) = inside.split_once(']').ok_or_else(|| Unanswered::Unclosed(text.into()))?;
                way.enter_element(place)?;
                rest = later;
                continue;
            }
            if let Some(later) = rest.strip_prefix("->") {
                way.follow()?;
                rest = later;
            } else if !is_start {
                rest = rest.strip_prefix('.').ok_or_else(|| Unanswered::NoPath { path: text.into(), rest: rest.into() })?;
            }
            let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
            let (name, later) = rest.split_at(end);
            way.enter_member(name)?;
            (rest, is_start) = (later, false);
        }
        let shape = types.shape(way.last);
        Ok(Path { pointers: way.pointers, last: way.last, shape })
    }

    /// The value of a member of the structure at an address; null if a pointer on the way is null.
    pub(crate) fn value(&self, structure: u64, path: &Path) -> Result<Value, Fault> {
        let mut at = structure;
        for pointer in &path.pointers {
            at = self.visible(at.wrapping_add(*pointer), 8).and_then(|()| self.memory.u64(at.wrapping_add(*pointer)))?;
            if at == 0 {
                return Ok(Value::Null);
            }
        }
        let field = path.last;
        let place = at.wrapping_add(field.offset);
        if path.shape == Shape::Place {
            return Ok(place.into());
        }
        self.visible(place, field.size as u64)?;
        match path.shape {
            Shape::Text => self.text(at, field).map(Into::into),
            Shape::Numbers(size, is_signed) => self.numbers(place, field.size, size, is_signed),
            Shape::Signed => self.number(at, field).map(|number| signed(number, &field).into()),
            Shape::Truth => self.number(at, field).map(|number| (number != 0).into()),
            _ => self.number(at, field).map(Into::into),
        }
    }

    fn numbers(&self, place: u64, bytes: usize, size: usize, is_signed: bool) -> Result<Value, Fault> {
        if size == 0 || size > 8 || bytes / size > MOST_ELEMENTS {
            return Err(Fault::TooLong);
        }
        let found = self.memory.bytes(place, bytes as u64)?;
        let element = Field { offset: 0, size, bits: None, of_type: 0 };
        let value = |part: &[u8]| {
            let number = part.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte));
            if is_signed { Value::from(signed(number, &element)) } else { number.into() }
        };
        Ok(found.chunks_exact(size).map(value).collect())
    }
}

/// A signed number with as many bits as its member has.
fn signed(number: u64, field: &Field) -> i64 {
    let width = field.bits.map_or(8 * field.size as u32, |(_, count)| count).clamp(1, 64);
    number.cast_signed() << (64 - width) >> (64 - width)
}
