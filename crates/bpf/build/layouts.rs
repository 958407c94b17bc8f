//! Generates Rust from the structures and enums of `events.h`: one structure with named fields for
//! each, which is read from and written to bytes at the offsets that the compiler reports, and one
//! constant for each name of an enum.

use std::{fmt::Write, fs, path::PathBuf};

use sysdock_symbols::btf::{Type, Types};

/// Structure at the beginning of each event, which is read separately.
const HEADER: &str = "event_header";

/// A C file that mentions each structure and enum of the headers, so that the compiler describes
/// their layouts.
pub(crate) fn c_source(headers: &[PathBuf]) -> String {
    let mut code = String::new();
    let mut number = 0;
    for header in headers {
        let text = fs::read_to_string(header).unwrap_or_else(|error| panic!("{}: {error}", header.display()));
        let path = header.strip_prefix("src").expect("headers lie in src").display();
        writeln!(code, "#include \"{path}\"").expect("a string takes all");
        for line in text.lines() {
            let mut words = line.split(' ');
            if let (Some(kind @ ("struct" | "enum")), Some(name), Some("{")) = (words.next(), words.next(), words.next()) {
                writeln!(code, "{kind} {name} *layout_{number};").expect("a string takes all");
                number += 1;
            }
        }
    }
    code
}

/// The generated Rust code.
pub(crate) fn rust_source(types: &Types) -> String {
    let mut code = String::new();
    for id in types.ids() {
        match types.get(id) {
            Type::Struct if name_of(types, id) != HEADER => structure(&mut code, types, id),
            Type::Enum => constants(&mut code, &name_of(types, id), &types.values(id)),
            _ => {}
        }
    }
    code
}

fn constants(code: &mut String, name: &str, values: &[(String, u32)]) {
    // Kinds are compared with a byte, flags with numbers of several widths.
    let width = if name.ends_with("_kind") { "u8" } else { "u32" };
    for (value, number) in values {
        writeln!(code, "/// Of `enum {name}`.\npub(crate) const {value}: {width} = {number};").expect("a string takes all");
    }
}

/// A field: its name, type and offset, and the code that reads and writes it.
struct Field {
    name: String,
    of: String,
    read: String,
    write: String,
}

fn structure(code: &mut String, types: &Types, id: u32) {
    let c_name = name_of(types, id);
    let name = camel(&c_name);
    let mut length = types.size(id);
    let mut fields = Vec::new();
    for (member, place) in types.parts(id) {
        let (member, of, offset) = (text(member), place.of_type, place.offset as usize);
        match types.get(of) {
            // An array of unknown length after the structure.
            Type::Array { number: 0, .. } => length = offset,
            Type::Array { of, .. } if types.get(of) == Type::Struct => length = offset,
            Type::Struct if name_of(types, of) == HEADER => {}
            _ if member.starts_with("pad") => {}
            _ => fields.push(field(types, &member, of, offset)),
        }
    }
    let all = |part: fn(&Field) -> String| fields.iter().map(part).collect::<String>();
    let declared = all(|field| format!("    pub(crate) {}: {},\n", field.name, field.of));
    let read = all(|field| format!("{}: {}, ", field.name, field.read));
    let write = all(|field| format!("        {};\n", field.write));
    write!(
        code,
        "/// `struct {c_name}`.\n#[derive(Clone, Copy, Debug)]\npub(crate) struct {name} {{\n{declared}}}\n\n\
         impl Layout for {name} {{\n    const BYTES: usize = {length};\n\n    #[inline]\n    fn read(bytes: &[u8]) -> Option<Self> {{\n        \
         let bytes: &[u8; {length}] = bytes.first_chunk()?;\n        Some({name} {{ {read} }})\n    }}\n\n    \
         fn write(&self, out: &mut [u8]) {{\n{write}    }}\n}}\n\n\
         impl Default for {name} {{\n    fn default() -> Self {{\n        \
         {name}::read(&[0; {length}]).expect(\"it is as long\")\n    }}\n}}\n\n"
    )
    .expect("a string takes all");
    if c_name.ends_with("_counters") {
        counters(code, &name, &fields);
    }
}

/// Names and values of a structure of which each field is a counter.
fn counters(code: &mut String, name: &str, fields: &[Field]) {
    let number = fields.len();
    let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
    let values = names.iter().map(|name| format!("self.{name}")).collect::<Vec<_>>().join(", ");
    write!(
        code,
        "impl {name} {{\n    pub(crate) const NAMES: [&'static str; {number}] = {names:?};\n\n    \
         pub(crate) fn values(&self) -> [u64; {number}] {{\n        [{values}]\n    }}\n}}\n\n"
    )
    .expect("a string takes all");
}

fn field(types: &Types, name: &str, id: u32, offset: usize) -> Field {
    let bytes = types.size(id);
    let (of, read, write) = match types.get(id) {
        Type::Integer { signed } => {
            let of = integer(bytes, signed);
            let end = offset + bytes;
            let write = format!("out[{offset}..{end}].copy_from_slice(&self.{name}.to_le_bytes())");
            (of.clone(), format!("{of}::from_le_bytes(part(bytes, {offset}))"), write)
        }
        Type::Array { of, number } => {
            let Type::Integer { signed } = types.get(of) else { panic!("{name}: an array of something else than numbers") };
            let bytes = types.size(of);
            if bytes == 1 {
                // Characters: `char` is signed in C, but not in Rust.
                let write = format!("out[{offset}..{}].copy_from_slice(&self.{name})", offset + number);
                return Field {
                    name: name.to_string(),
                    of: format!("[u8; {number}]"),
                    read: format!("part(bytes, {offset})"),
                    write,
                };
            }
            let of = integer(bytes, signed);
            let read = format!("std::array::from_fn(|index| {of}::from_le_bytes(part(bytes, {offset} + {bytes} * index)))");
            let write = format!(
                "for (index, value) in self.{name}.iter().enumerate() {{ \
                 out[{offset} + {bytes} * index..][..{bytes}].copy_from_slice(&value.to_le_bytes()); }}"
            );
            (format!("[{of}; {number}]"), read, write)
        }
        Type::Struct => {
            let of = camel(&name_of(types, id));
            let end = offset + bytes;
            let read = format!("{of}::read(&bytes[{offset}..{end}]).expect(\"it is as long\")");
            (of, read, format!("self.{name}.write(&mut out[{offset}..{end}])"))
        }
        _ => panic!("{name}: a type that events cannot have"),
    };
    Field { name: name.to_string(), of, read, write }
}

fn name_of(types: &Types, id: u32) -> String {
    text(types.name(id))
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

fn integer(bytes: usize, signed: bool) -> String {
    format!("{}{}", if signed { "i" } else { "u" }, 8 * bytes)
}

/// `CallEvent` for `call_event`.
fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(word).collect()
}
