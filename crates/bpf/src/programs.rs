//! Compiled BPF programs from build.rs. They are compressed with zstd, to a fifth of their size.

/// The compressed content of `NAME.bpf.o`. It is a static, because the executable would contain a
/// constant once for each unit of code that uses it.
macro_rules! programs {
    ($name:literal) => {{
        static PROGRAMS: [u8; include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o.zst")).len()] =
            *include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o.zst"));
        &PROGRAMS
    }};
}

/// Uncompress an object. Takes less than a millisecond.
pub(crate) fn unpacked(packed: &[u8]) -> Vec<u8> {
    zstd::decode_all(packed).expect("the build has packed it")
}
