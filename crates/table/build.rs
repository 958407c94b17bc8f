//! From every `knowhow/tables/*.toml`: the definition of the table and its typed rows, so that the executable can be copied alone to another
//! machine, and a writer that misses a column, or names one that is not there, does not compile.

#[path = "build/definition.rs"]
mod definition;
#[path = "build/definitions.rs"]
mod definitions;
#[path = "build/rows.rs"]
mod rows;

use std::{env, fs, path::Path};

use definition::Table;

fn main() {
    let tables = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../knowhow/tables");
    println!("cargo:rerun-if-changed={}", tables.display());
    let mut files: Vec<_> = fs::read_dir(&tables)
        .unwrap_or_else(|e| panic!("{}: {e}", tables.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    let parsed: Vec<Table> = files.iter().map(|file| parse(file)).collect();
    let out = env::var("OUT_DIR").unwrap();
    fs::write(Path::new(&out).join("definitions.rs"), definitions::code(&parsed)).unwrap();
    fs::write(Path::new(&out).join("rows.rs"), rows::code(&parsed)).unwrap();
}

fn parse(file: &Path) -> Table {
    println!("cargo:rerun-if-changed={}", file.display());
    toml::from_str(&fs::read_to_string(file).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
