//! Embed every `knowhow/tables/*.toml`, so that the executable can be copied alone to another machine.

use std::{env, fmt::Write, fs, path::Path};

fn main() {
    let tables = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../knowhow/tables");
    println!("cargo:rerun-if-changed={}", tables.display());
    let mut files: Vec<_> = fs::read_dir(&tables)
        .unwrap_or_else(|e| panic!("{}: {e}", tables.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    let mut code = String::from("const TABLE_FILES: &[&str] = &[\n");
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let text = fs::read_to_string(&file).unwrap();
        writeln!(code, "    {text:?},").unwrap();
    }
    code.push_str("];\n");
    let out = Path::new(&env::var("OUT_DIR").unwrap()).join("tables.rs");
    fs::write(out, code).unwrap();
}
