//! A constructor for each entry of the sentences that the native half uses.

use std::{collections::BTreeMap, fmt::Write};

use serde::Deserialize;

/// One entry: its sentence in each language, and its values with their units.
#[derive(Deserialize)]
pub(crate) struct Entry {
    #[serde(default)]
    pub(crate) values: toml::Table,
    pub(crate) en: String,
}

/// Entries of a subject, by name.
pub(crate) type Subject = BTreeMap<String, Entry>;

/// Everything for `sysdock_table::facts`.
pub(crate) fn code(subjects: &BTreeMap<String, Subject>) -> String {
    let mut code = String::new();
    for (subject, entries) in subjects {
        writeln!(
            code,
            "/// Entries of `knowhow/sentences/{subject}.toml`.\npub mod {subject} {{\n    use crate::fact::{{Fact, Value}};\n"
        )
        .unwrap();
        for (name, entry) in entries {
            constructor(&mut code, subject, name, entry);
        }
        code.push_str("}\n\n");
    }
    code.push_str("/// Code, English sentence, and the units of the values, for text that the executable prints itself.\n");
    code.push_str("pub const ENGLISH: &[(&str, &str, &[(&str, &str)])] = &[\n");
    for (subject, entries) in subjects {
        for (name, entry) in entries {
            let units: Vec<_> = entry.values.iter().map(|(value, unit)| (value.as_str(), unit.as_str().unwrap_or(""))).collect();
            writeln!(code, "    ({:?}, {:?}, &{units:?}),", format!("{subject}/{name}"), entry.en).unwrap();
        }
    }
    code.push_str("];\n");
    code
}

fn constructor(code: &mut String, subject: &str, name: &str, entry: &Entry) {
    let names: Vec<&str> = entry.values.keys().map(String::as_str).collect();
    let parameters: Vec<String> = names.iter().map(|value| format!("{value}: impl Into<Value>")).collect();
    let values: Vec<String> = names.iter().map(|value| format!("({value:?}, {value}.into())")).collect();
    writeln!(code, "    #[doc = {:?}]\n    #[must_use]", entry.en).unwrap();
    writeln!(code, "    pub fn {name}({}) -> Fact {{", parameters.join(", ")).unwrap();
    writeln!(code, "        Fact::new({:?}, vec![{}])\n    }}\n", format!("{subject}/{name}"), values.join(", ")).unwrap();
}
