//! The functions of qemu are in the program that loads the plugin, so no library has them.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Unit tests are a program of their own, and call none of them.
    println!("cargo::rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
}
