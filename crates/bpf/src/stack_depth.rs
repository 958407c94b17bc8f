//! Checks the stack usage of the programs and everything that they call: kernels up to 6.12 refuse
//! more than 512 bytes. Newer kernels give each program a stack of its own, so on such a machine
//! nothing else would find an excess.
//!
//! The depth is computed as the verifier does (`check_max_stack_depth` of kernel/bpf/verifier.c),
//! but over all code that the compiler generated: the verifier leaves out unreachable code, so the
//! result is never too small. Instructions:
//! docs.kernel.org/bpf/standardization/instruction-set.html.

use std::collections::BTreeMap;

use crate::{
    families::{Converter, FAMILIES, calls::Calls, processes::Processes},
    live,
    programs::unpacked,
};

const MOST: usize = 512;
const FRAME_POINTER: u8 = 10;
const ADD_IMMEDIATE: u8 = 0x07;
const LOAD_ADDRESS: u8 = 0x18;
const CALL: u8 = 0x85;
const EXECUTABLE: u64 = 4;
const SYMBOLS: usize = 2;
const RELOCATIONS: usize = 9;
const FUNCTION: usize = 2;

/// A function: its section, and its offset in the section [B].
type SymbolAt = (usize, usize);

#[derive(Debug, Default)]
struct Function {
    name: String,
    stack: usize,
    calls: Vec<SymbolAt>,
}

#[derive(Debug, Default)]
struct Section {
    kind: usize,
    flags: u64,
    offset: usize,
    bytes: usize,
    link: usize,
    info: usize,
}

fn number(object: &[u8], at: usize, bytes: usize) -> usize {
    object[at..at + bytes].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

fn signed(object: &[u8], at: usize) -> i32 {
    i32::from_le_bytes(object[at..at + 4].try_into().expect("four bytes"))
}

fn sections(object: &[u8]) -> Vec<Section> {
    let (start, bytes, count) = (number(object, 0x28, 8), number(object, 0x3a, 2), number(object, 0x3c, 2));
    let section = |index| {
        let at = start + index * bytes;
        Section {
            kind: number(object, at + 4, 4),
            flags: number(object, at + 8, 8) as u64,
            offset: number(object, at + 24, 8),
            bytes: number(object, at + 32, 8),
            link: number(object, at + 40, 4),
            info: number(object, at + 44, 4),
        }
    };
    (0..count).map(section).collect()
}

/// For each symbol: kind, location, size and name.
fn symbols(object: &[u8], sections: &[Section]) -> Vec<(usize, SymbolAt, usize, String)> {
    let table = sections.iter().find(|section| section.kind == SYMBOLS).expect("it has symbols");
    let names = sections[table.link].offset;
    let symbol = |at: usize| {
        let name = &object[names + number(object, at, 4)..];
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        let place = (number(object, at + 6, 2), number(object, at + 8, 8));
        (number(object, at + 4, 1) & 15, place, number(object, at + 16, 8), String::from_utf8_lossy(name).into_owned())
    };
    (table.offset..table.offset + table.bytes).step_by(24).map(symbol).collect()
}

fn functions(object: &[u8]) -> BTreeMap<SymbolAt, Function> {
    let sections = sections(object);
    let symbols = symbols(object, &sections);
    let mut named: BTreeMap<SymbolAt, usize> = BTreeMap::new();
    for table in sections.iter().filter(|section| section.kind == RELOCATIONS) {
        for at in (table.offset..table.offset + table.bytes).step_by(16) {
            named.insert((table.info, number(object, at, 8)), number(object, at + 12, 4));
        }
    }
    let is_code = |section: usize| sections.get(section).is_some_and(|section| section.flags & EXECUTABLE != 0);
    let mut found = BTreeMap::new();
    for (_, place, bytes, name) in symbols.iter().filter(|symbol| symbol.0 == FUNCTION) {
        let mut function = Function { name: name.clone(), ..Function::default() };
        for at in (place.1..place.1 + bytes).step_by(8) {
            let code = sections[place.0].offset + at;
            // A relocation may name a function of the kernel rather than one of the object.
            let named = named.get(&(place.0, at)).map(|index| symbols[*index].1);
            if named.is_none_or(|named| is_code(named.0)) {
                function.read(&object[code..code + 8], (place.0, at), named);
            }
        }
        found.insert(*place, function);
    }
    found
}

impl Function {
    /// Process one instruction, and the location in code that a relocation adds to it.
    fn read(&mut self, instruction: &[u8], here: SymbolAt, named: Option<SymbolAt>) {
        let (operation, to, from) = (instruction[0], instruction[1] & 15, instruction[1] >> 4);
        let offset = i16::from_le_bytes([instruction[2], instruction[3]]);
        let immediate = signed(instruction, 4);
        let is_memory =
            matches!(operation & 7, 1 if from == FRAME_POINTER) || matches!(operation & 7, 2 | 3 if to == FRAME_POINTER);
        if is_memory && offset < 0 {
            self.stack = self.stack.max(usize::from(offset.unsigned_abs()));
        }
        if operation == ADD_IMMEDIATE && (-512..0).contains(&immediate) {
            // It may copy the frame pointer.
            self.stack = self.stack.max(immediate.unsigned_abs() as usize);
        }
        match (operation, named) {
            (CALL, Some((section, at))) => self.calls.push((section, (at as i64 + 8 * (i64::from(immediate) + 1)) as usize)),
            (CALL, None) if from == 1 => self.calls.push((here.0, (here.1 as i64 + 8 * (i64::from(immediate) + 1)) as usize)),
            (LOAD_ADDRESS, Some((section, at))) => self.calls.push((section, at + immediate as usize)),
            _ => {}
        }
    }
}

/// The deepest chain of calls that starts at a function: its bytes, and its names.
fn deepest(functions: &BTreeMap<SymbolAt, Function>, from: SymbolAt) -> (usize, String) {
    let function = &functions[&from];
    let below = function.calls.iter().map(|place| deepest(functions, *place)).max().unwrap_or_default();
    (function.stack.max(1).next_multiple_of(32) + below.0, format!("{}({}) {}", function.name, function.stack, below.1))
}

#[test]
fn programs_take_no_more_stack_than_older_kernels_give() {
    let others = FAMILIES.iter().map(|family| family.object);
    let others = others.chain(live::OBJECTS);
    for object in others.chain([Calls::FAMILY.object, Processes::FAMILY.object]).filter(|object| !object.is_empty()) {
        let functions = functions(&unpacked(object));
        assert!(functions.values().any(|function| function.stack > 0), "no code was found");
        for place in functions.keys() {
            let (bytes, chain) = deepest(&functions, *place);
            assert!(bytes <= MOST, "{bytes} bytes of stack: {chain}");
        }
    }
}
