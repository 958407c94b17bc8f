//! The functions of qemu are in the program that loads the plugin, so no library has them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Unit tests are a program of their own, and call none of them. zig, which links what `make dist` makes, builds no tests; it does not
    // know the option, and leaves symbols of a library open anyway.
    let by_zig = std::env::var("RUSTC_LINKER").is_ok_and(|linker| linker.contains("zig"));
    if !by_zig {
        println!("cargo::rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
    }
}
