//! The functions of qemu are in the program that loads the plugin, so no library provides them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Unit tests are a program of their own, and call none of them. zig, which links the results of
    // `make dist`, builds no tests; it does not know the option, and allows undefined symbols of a
    // library anyway.
    let by_zig = std::env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zig"));
    if !by_zig {
        println!("cargo::rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
    }
}
