//! Compiled BPF programs, as build.rs leaves them: packed by zstd, as they are a fifth of that size then.

/// The content of `NAME.bpf.o`, packed. It is in a static: a constant would be in the executable once for each unit of code that uses it.
macro_rules! programs {
    ($name:literal) => {{
        static PROGRAMS: [u8; include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o.zst")).len()] =
            *include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o.zst"));
        &PROGRAMS
    }};
}

/// The object that the compiler made. Takes less than a millisecond.
pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    zstd::decode_all(packed).expect("the build has packed it")
}
