//! Compiles the BPF programs of `src/bpf`, one object for each family of probes.

use std::{env, fs, path::Path, process::Command};

fn main() {
    let folder = Path::new("src/bpf");
    println!("cargo:rerun-if-changed=src/bpf");
    // Where libbpf-sys has put the headers of its libbpf.
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    for entry in fs::read_dir(folder).expect("src/bpf is a folder") {
        let source = entry.expect("src/bpf can be read").path();
        let Some(stem) = source.file_name().and_then(|name| name.to_str()?.strip_suffix(".bpf.c")) else { continue };
        let object = Path::new(&out).join(format!("{stem}.bpf.o"));
        run(Command::new(&clang)
            .args(["-O2", "-g", "-mcpu=v3", "-target", "bpf", "-D__TARGET_ARCH_x86", "-Wall", "-Werror", "-Wno-unused-function"])
            .arg(format!("-I{headers}"))
            .arg("-c")
            .arg(&source)
            .arg("-o")
            .arg(&object));
        // Debug information is of no use to the kernel; BTF stays.
        run(Command::new(env::var("LLVM_STRIP").unwrap_or_else(|_| "llvm-strip".into())).arg("-g").arg(&object));
    }
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{command:?}: {status:?}; the build needs clang and llvm-strip (Debian: apt-get install clang llvm libelf-dev zlib1g-dev)"
    );
}
