//! Checks the stack usage of the programs and everything that they call: kernels up to 6.12 refuse
//! more than 512 bytes. Newer kernels give each program a stack of its own, so on such a machine
//! nothing else would find an excess.
//!
//! The depth is computed as the verifier does (`check_max_stack_depth` of kernel/bpf/verifier.c),
//! but over all code that the compiler generated: the verifier leaves out unreachable code, so the
//! result is never too small. Instructions:
//! docs.kernel.org/bpf/standardization/instruction-set.html.

use std::collections::BTreeMap;

use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, SectionKind, SymbolKind};

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

/// A function: its section, and its offset in the section [B].
type SymbolAt = (usize, usize);

#[derive(Debug, Default)]
struct Function {
    name: String,
    stack: usize,
    calls: Vec<SymbolAt>,
}

fn functions(object: &[u8]) -> BTreeMap<SymbolAt, Function> {
    let object = object::File::parse(object).expect("an object");
    let place = |symbol: &object::Symbol<'_, '_>| Some((symbol.section_index()?.0, symbol.address() as usize));
    // `None`: a symbol of the kernel rather than the object.
    let mut named: BTreeMap<SymbolAt, Option<SymbolAt>> = BTreeMap::new();
    for section in object.sections() {
        for (at, relocation) in section.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            named.insert((section.index().0, at as usize), place(&object.symbol_by_index(symbol).expect("it has symbols")));
        }
    }
    let section = |index| object.section_by_index(SectionIndex(index)).expect("it has sections");
    let mut found = BTreeMap::new();
    for symbol in object.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        let Some((index, start)) = place(&symbol) else { continue };
        let code = section(index).data().expect("it has code");
        let mut function = Function { name: symbol.name().expect("it has a name").to_string(), ..Function::default() };
        for at in (start..start + symbol.size() as usize).step_by(8) {
            let named = named.get(&(index, at)).copied();
            if named.is_none_or(|named| named.is_some_and(|(index, _)| section(index).kind() == SectionKind::Text)) {
                function.read(&code[at..at + 8], (index, at), named.flatten());
            }
        }
        found.insert((index, start), function);
    }
    found
}

impl Function {
    /// Process one instruction, and the location in code that a relocation adds to it.
    fn read(&mut self, instruction: &[u8], here: SymbolAt, named: Option<SymbolAt>) {
        let (operation, to, from) = (instruction[0], instruction[1] & 15, instruction[1] >> 4);
        let offset = i16::from_le_bytes([instruction[2], instruction[3]]);
        let immediate = i32::from_le_bytes(instruction[4..8].try_into().expect("four bytes"));
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
