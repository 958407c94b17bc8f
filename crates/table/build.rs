//! Generates, from each `knowhow/tables/*.toml`, the definition of the table and its typed rows. So
//! the executable can be copied alone to another machine, and a writer that omits a column, or
//! names one that does not exist, does not compile. From `knowhow/sentences`: constructors of facts.

#[path = "build/definition.rs"]
mod definition;
#[path = "build/definitions.rs"]
mod definitions;
#[path = "build/facts.rs"]
mod facts;
#[path = "build/rows.rs"]
mod rows;

use std::{collections::BTreeMap, env, fs, path::Path};

use definition::Table;
use serde::de::DeserializeOwned;

/// Subjects of `knowhow/sentences` that the native half states facts of. Others are Python's: rewording those builds nothing.
const NATIVE_SUBJECTS: [&str; 11] =
    ["agent", "capture", "clock", "disk", "dump", "issues", "load", "load_logs", "marks", "measure", "paths"];

fn main() {
    let tables = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../knowhow/tables");
    println!("cargo:rerun-if-changed={}", tables.display());
    let mut files: Vec<_> = fs::read_dir(&tables)
        .unwrap_or_else(|e| panic!("{}: {e}", tables.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    files.sort();
    let mut parsed: Vec<Table> = files.iter().map(|file| parse(file)).collect();
    definition::add_counters(&mut parsed);
    let out = env::var("OUT_DIR").unwrap();
    fs::write(Path::new(&out).join("definitions.rs"), definitions::code(&parsed)).unwrap();
    fs::write(Path::new(&out).join("rows.rs"), rows::code(&parsed)).unwrap();
    let sentences = tables.with_file_name("sentences");
    let subjects: BTreeMap<String, facts::Subject> =
        NATIVE_SUBJECTS.iter().map(|subject| ((*subject).into(), parse(&sentences.join(format!("{subject}.toml"))))).collect();
    fs::write(Path::new(&out).join("facts.rs"), facts::code(&subjects)).unwrap();
}

fn parse<T: DeserializeOwned>(file: &Path) -> T {
    println!("cargo:rerun-if-changed={}", file.display());
    toml::from_str(&fs::read_to_string(file).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
