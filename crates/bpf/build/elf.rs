//! Reads sections that the compiler put into an object.

/// Content of a section of a 64-bit little-endian ELF file.
pub(crate) fn section<'a>(object: &'a [u8], wanted: &str) -> &'a [u8] {
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
