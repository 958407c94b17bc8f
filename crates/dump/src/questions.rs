//! Questions about an open dump, one at a time, from scripts and the shell.

use serde::Deserialize;
use serde_json::{Value, json};
use sysdock_table::{Batch, TableError, rows::Row};

use crate::{
    Kernel, Part, Sink,
    error::{Fault, Unanswered},
    tables,
    walk::Walk,
};

/// Limit for the bytes in one answer.
const MOST_BYTES: u64 = 16 << 20;
/// Limit for the matches of a search.
const MOST_PLACES: usize = 100_000;

/// A question. Addresses are those of the kernel.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// What the dump is of.
    Info,
    /// All rows of these parts, as the tables of a recording.
    Tables {
        /// Names of [`Part`].
        parts: Vec<String>,
    },
    /// The address of a symbol.
    Symbol {
        /// Name of the symbol.
        name: String,
    },
    /// The addresses of a variable for each processor.
    PerCpu {
        /// Name of the variable.
        name: String,
    },
    /// The function that contains an address.
    Function {
        /// The address.
        address: u64,
    },
    /// The members of a structure.
    Type {
        /// Name of the structure.
        name: String,
    },
    /// Names of structures.
    Types {
        /// Beginning of the names.
        start: String,
    },
    /// Members of structures, as columns.
    Read {
        /// Name of the structure.
        structure: String,
        /// Address of each structure.
        addresses: Vec<u64>,
        /// Paths, for example `comm`, `mm->total_vm`, `rss_stat[0].count`.
        members: Vec<String>,
    },
    /// Bytes of memory.
    Memory {
        /// Address of the first byte.
        address: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Text up to its first NUL, of at most 256 bytes.
    Text {
        /// Address of the text.
        address: u64,
    },
    /// The structures of a list.
    List {
        /// Type of the structures.
        structure: String,
        /// Address of the head of the list, which is in no structure.
        head: u64,
        /// Their `list_head`.
        member: String,
    },
    /// The structures of a red-black tree, in order.
    Tree {
        /// Type of the structures.
        structure: String,
        /// Address of its `rb_root`.
        root: u64,
        /// Their `rb_node`.
        member: String,
    },
    /// A structure, the one that its member points to, and so on until a null pointer.
    Chain {
        /// Type of the structures.
        structure: String,
        /// Address of the first structure.
        start: u64,
        /// The member with the pointer.
        member: String,
    },
    /// The entries of an `xarray`, `radix_tree_root` or `idr`.
    Xarray {
        /// Address of the array.
        address: u64,
    },
    /// The addresses of some bytes.
    Search {
        /// The bytes, in hexadecimal digits.
        bytes: String,
        /// Largest number of matches.
        limit: usize,
    },
}

impl Kernel {
    /// Answer a question. Faults are part of the answer, at the value or the walk that they
    /// concern; the error is about the question itself.
    ///
    /// # Errors
    /// [`Unanswered`]: there is no such symbol, type, member or part.
    pub fn answer(&self, question: &Question) -> Result<Value, Unanswered> {
        match question {
            Question::Info => Ok(self.description().to_json()),
            Question::Tables { parts } => self.answer_tables(parts),
            Question::Symbol { name } => Ok(json!({ "address": self.named(name)? })),
            Question::PerCpu { name } => {
                let variable = self.named(name)?;
                let places = (0..self.cpus()).map(|cpu| self.per_cpu(variable, cpu).ok());
                Ok(json!({ "addresses": places.collect::<Vec<_>>() }))
            }
            Question::Function { address } => {
                let found = self.function(*address);
                let module = found.and_then(|(_, _, module)| module);
                Ok(json!({ "name": found.map(|(name, ..)| name), "offset": found.map(|(_, far, _)| far), "module": module }))
            }
            Question::Type { name } => self.answer_type(name),
            Question::Types { start } => Ok(json!({ "names": self.types.named(start) })),
            Question::Read { structure, addresses, members } => self.answer_read(structure, addresses, members),
            Question::Memory { address, length } => self.answer_memory(*address, *length),
            Question::Text { address } => Ok(match self.visible(*address, 1).and_then(|()| self.string(*address)) {
                Ok(text) => json!({ "text": text, "status": "ok" }),
                Err(fault) => json!({ "text": null, "status": fault.name() }),
            }),
            Question::List { structure, head, member } => Ok(walked(&self.list(*head, self.offset(structure, member)?))),
            Question::Tree { structure, root, member } => {
                let offset = self.offset(structure, member)?;
                let walk = self.tree(*root, offset).map_err(Unanswered::Fault)?;
                Ok(walked(&walk))
            }
            Question::Chain { structure, start, member } => Ok(walked(&self.chain(*start, self.offset(structure, member)?))),
            Question::Xarray { address } => {
                let (entries, fault) = self.xarray(*address).unwrap_or_else(|fault| (Vec::new(), Some(fault)));
                Ok(json!({ "entries": entries, "status": fault.map_or("ok", Fault::name) }))
            }
            Question::Search { bytes, limit } => self.answer_search(bytes, *limit),
        }
    }

    fn named(&self, name: &str) -> Result<u64, Unanswered> {
        self.symbols.address(name).ok_or_else(|| Unanswered::NoSymbol(name.into()))
    }

    fn offset(&self, structure: &str, member: &str) -> Result<u64, Unanswered> {
        let types = self.types_with(structure).ok_or_else(|| Unanswered::NoStructure(structure.into()))?;
        let number = types.structure(structure).unwrap_or_default();
        let inside = |at: (u32, u64), name: &str| {
            let field = types.member_of(at.0, name).ok_or_else(|| Unanswered::NoMember(member.into(), structure.into()))?;
            Ok::<_, Unanswered>((field.of_type, at.1 + field.offset))
        };
        member.split('.').try_fold((number, 0), inside).map(|(_, offset)| offset)
    }

    fn answer_tables(&self, words: &[String]) -> Result<Value, Unanswered> {
        let named = |word: &String| Part::named(word).ok_or_else(|| Unanswered::NoPart(word.clone()));
        let parts = words.iter().map(named).collect::<Result<Vec<_>, _>>()?;
        let mut found = Columns::default();
        let outcome = tables::write_parts(self, &parts, &mut found).map_err(Unanswered::Table)?;
        let issues = outcome.issues.iter().map(|(_, detail)| detail);
        Ok(json!({ "tables": found.0, "issues": issues.collect::<Vec<_>>() }))
    }

    fn answer_type(&self, name: &str) -> Result<Value, Unanswered> {
        let types = self.types_with(name).ok_or_else(|| Unanswered::NoStructure(name.into()))?;
        let number = types.structure(name).unwrap_or_default();
        let members = types.members(number).into_iter().map(|member| {
            let bits = member.field.bits.map(|(first, count)| [first, count]);
            json!({ "name": member.name, "type": member.type_name, "offset": member.field.offset, "bytes": member.field.size, "bits": bits })
        });
        Ok(json!({ "name": types.type_name(number), "bytes": types.size(number), "members": members.collect::<Vec<_>>() }))
    }

    fn answer_read(&self, structure: &str, addresses: &[u64], members: &[String]) -> Result<Value, Unanswered> {
        let paths = members.iter().map(|member| self.path(structure, member)).collect::<Result<Vec<_>, _>>()?;
        let mut columns = vec![Vec::with_capacity(addresses.len()); paths.len()];
        let mut status = Vec::with_capacity(addresses.len());
        for address in addresses {
            let mut why = None;
            for (path, column) in paths.iter().zip(&mut columns) {
                column.push(self.value(*address, path).unwrap_or_else(|fault| {
                    why = why.or(Some(fault));
                    Value::Null
                }));
            }
            status.push(why.map_or("ok", Fault::name));
        }
        Ok(json!({ "columns": columns, "status": status }))
    }

    fn answer_memory(&self, address: u64, length: u64) -> Result<Value, Unanswered> {
        if length > MOST_BYTES {
            return Err(Unanswered::TooMuch { bytes: length, most: MOST_BYTES });
        }
        Ok(match self.visible(address, length).and_then(|()| self.memory.bytes(address, length)) {
            Ok(bytes) => json!({ "bytes": in_digits(&bytes), "status": "ok" }),
            Err(fault) => json!({ "bytes": null, "status": fault.name() }),
        })
    }

    fn answer_search(&self, digits: &str, limit: usize) -> Result<Value, Unanswered> {
        let wanted = from_digits(digits).filter(|bytes| !bytes.is_empty()).ok_or(Unanswered::NothingToSearch)?;
        let found = self.search(&wanted, limit.min(MOST_PLACES));
        let places =
            found.places.iter().map(|physical| json!({ "physical": physical, "address": self.memory.mapped(*physical) }));
        Ok(json!({
            "places": places.collect::<Vec<_>>(), "has_more": found.has_more,
            "unread_pages": found.unread_pages, "user_pages": found.user_pages,
        }))
    }
}

fn walked(walk: &Walk) -> Value {
    json!({ "addresses": walk.entries, "status": walk.fault.map_or("ok", Fault::name) })
}

fn in_digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_digits(digits: &str) -> Option<Vec<u8>> {
    let digit = |letter: u8| char::from(letter).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    };
    digits.as_bytes().chunks(2).map(byte).collect()
}

/// Rows as columns of JSON: `[table, [[column, values], ...]]` for each table.
#[derive(Default)]
struct Columns(Vec<(&'static str, Vec<(String, Value)>)>);

impl Sink for Columns {
    fn write_rows<R: Row>(&mut self, rows: impl IntoIterator<Item = R>) -> Result<(), TableError> {
        let name = <R::Columns as sysdock_table::rows::Columns>::TABLE;
        let mut batch: Batch<R::Columns> = rows.into_iter().collect();
        self.0.push((name, batch.take_values()));
        Ok(())
    }

    fn has(&mut self, _: &'static str) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_bytes() {
        assert_eq!(from_digits("00ff7f"), Some(vec![0, 255, 127]));
        assert_eq!(in_digits(&[0, 255, 127]), "00ff7f");
        assert_eq!(from_digits("0"), None);
        assert_eq!(from_digits("+1"), None);
    }
}
