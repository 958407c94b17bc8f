//! Compiles the BPF programs of the families, and generates Rust structures from the layouts of
//! events, which only C defines.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use sysdock_symbols::{btf::Types, elf};

#[path = "build/layouts.rs"]
mod layouts;

fn main() {
    for watched in ["src/bpf", "src/families", "src/live", "src/accounting", "build", "build.rs"] {
        println!("cargo:rerun-if-changed={watched}");
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    for folder in families().into_iter().chain(["src/live", "src/accounting"].map(PathBuf::from)) {
        for source in files_ending(&folder, ".bpf.c") {
            let name = source.file_stem().expect("it has a name");
            let object = out.join(name).with_extension("bpf.o");
            compile(&source, &object);
            pack(&object);
        }
    }
    let mut headers = vec![PathBuf::from("src/bpf/event.h")];
    headers.extend(families().iter().flat_map(|family| files_ending(family, "events.h")));
    headers.extend(["src/live/sums.h", "src/accounting/accounts.h"].map(PathBuf::from));
    let every_layout = out.join("every_layout.c");
    write(&every_layout, &layouts::c_source(&headers));
    compile(&every_layout, &every_layout.with_extension("o"));
    let object = fs::read(every_layout.with_extension("o")).expect("it was just compiled");
    let types = elf::section(&object, ".BTF").and_then(|section| Types::of(section.to_vec(), None));
    let types = types.expect("the compiler writes types");
    write(&out.join("layouts.rs"), &layouts::rust_source(&types));
}

/// Folders of the families.
fn families() -> Vec<PathBuf> {
    let mut folders = files_ending(Path::new("src/families"), "");
    folders.retain(|path| path.is_dir());
    folders
}

fn files_ending(folder: &Path, end: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("a folder of the sources can be read").path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.to_string_lossy().ends_with(end)).collect();
    paths.sort();
    paths
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

fn compile(source: &Path, object: &Path) {
    // Where libbpf-sys has put the headers of its libbpf.
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    // Line information, which the kernel's verifier prints, names files relative to the crate,
    // wherever it is built.
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    run(Command::new(clang)
        .args(["-O2", "-g", "-mcpu=v3", "-target", "bpf", "-D__TARGET_ARCH_x86", "-Wall", "-Werror", "-Wno-unused-function"])
        // Debian has asm/errno.h in this folder.
        .args([
            "-Isrc".to_string(),
            format!("-I{headers}"),
            format!("-ffile-prefix-map={here}=."),
            format!("-ffile-prefix-map={headers}=include"),
            "-idirafter/usr/include/x86_64-linux-gnu".to_string(),
            "-c".to_string(),
        ])
        .arg(source)
        .arg("-o")
        .arg(object));
    // The kernel does not use debug information; BTF stays.
    run(Command::new(env::var("LLVM_STRIP").unwrap_or_else(|_| "llvm-strip".into())).arg("-g").arg(object));
}

/// Write `NAME.o.zst` next to the object. The executable contains the compressed file.
fn pack(object: &Path) {
    let content = fs::read(object).expect("it was just compiled");
    let packed = zstd::encode_all(content.as_slice(), 19).expect("memory only");
    fs::write(object.with_extension("o.zst"), packed).unwrap_or_else(|error| panic!("{}: {error}", object.display()));
}

fn run(command: &mut Command) {
    let status = command.status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "{command:?}: {status:?}; the build needs clang and llvm-strip (Debian: apt-get install clang llvm libelf-dev zlib1g-dev)"
    );
}
