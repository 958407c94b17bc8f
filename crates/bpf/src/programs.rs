//! Compiled BPF programs, as build.rs leaves them.

/// The content of `NAME.bpf.o`. It is in a static: a constant would be in the executable once for each unit of code that uses it.
macro_rules! programs {
    ($name:literal) => {{
        static PROGRAMS: [u8; include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")).len()] =
            *include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"));
        &PROGRAMS
    }};
}
