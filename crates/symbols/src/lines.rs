//! Source lines from debug information: the line programs of DWARF (version 5, section 6.2).

use std::borrow::Cow;

use gimli::{AttributeValue, Dwarf, EndianSlice, LineProgramHeader, LittleEndian, Unit};
use object::{Object, ObjectSection};

/// Limit for the rows of line programs of a file; further rows are ignored.
const MOST_ROWS: usize = 20_000_000;

type Slice<'d> = EndianSlice<'d, LittleEndian>;

/// The source line of each address.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    files: Vec<String>,
    /// By address: the file, and the line in it. `None`: there is no code from here on.
    rows: Vec<(u64, Option<(u32, u32)>)>,
}

impl Lines {
    /// Read the lines. Empty: there is no debug information, or it cannot be read.
    pub(crate) fn read(file: &object::File<'_>) -> Lines {
        let mut lines = Lines::default();
        // Rows before an error are valid.
        let _ = lines.add_all(file);
        // If the end of one range of code is the start of another, the start counts.
        lines.rows.sort_by_key(|(address, place)| (*address, place.is_some()));
        lines
    }

    /// The line of an address.
    pub(crate) fn find(&self, address: u64) -> Option<(&str, u32)> {
        let after = self.rows.partition_point(|(start, _)| *start <= address);
        let (_, place) = self.rows.get(after.checked_sub(1)?)?;
        let (file, line) = (*place)?;
        Some((&self.files[file as usize], line))
    }

    fn add_all(&mut self, file: &object::File<'_>) -> gimli::Result<()> {
        let section = |id: gimli::SectionId| -> gimli::Result<Cow<'_, [u8]>> {
            let data = file.section_by_name(id.name()).and_then(|section| section.uncompressed_data().ok());
            Ok(data.unwrap_or_default())
        };
        let sections = gimli::DwarfSections::load(section)?;
        let dwarf = sections.borrow(|data| EndianSlice::new(data, LittleEndian));
        let mut headers = dwarf.units();
        while let Some(header) = headers.next()? {
            // A damaged unit does not hide the others.
            if let Ok(unit) = dwarf.unit(header) {
                let _ = self.add(&dwarf, &unit);
            }
            if self.rows.len() >= MOST_ROWS {
                break;
            }
        }
        Ok(())
    }

    fn add(&mut self, dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else { return Ok(()) };
        let mut numbers = rustc_hash::FxHashMap::default();
        let mut rows = program.rows();
        while let Some((header, row)) = rows.next_row()? {
            let place = match row.line().filter(|_| !row.end_sequence()) {
                None => None,
                Some(line) => {
                    let number = *numbers.entry(row.file_index()).or_insert_with(|| {
                        self.files.push(path_of(dwarf, unit, header, row.file_index()));
                        self.files.len() as u32 - 1
                    });
                    Some((number, u32::try_from(line.get()).unwrap_or(u32::MAX)))
                }
            };
            // The last of several rows of one address describes the code.
            match self.rows.last_mut().filter(|(address, known)| *address == row.address() && known.is_some()) {
                Some(last) if place.is_some() => last.1 = place,
                _ => self.rows.push((row.address(), place)),
            }
            if self.rows.len() >= MOST_ROWS {
                break;
            }
        }
        Ok(())
    }
}

/// Path of a source file: the folder of the compilation, its own folder, its name.
fn path_of(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>, header: &LineProgramHeader<Slice<'_>>, index: u64) -> String {
    let text = |value: AttributeValue<Slice<'_>>| {
        dwarf.attr_string(unit, value).map(|text| String::from_utf8_lossy(text.slice()).into_owned()).unwrap_or_default()
    };
    let Some(file) = header.file(index) else { return "?".into() };
    let folder = file.directory(header).map(text).unwrap_or_default();
    let compiled_in = unit.comp_dir.map(|text| String::from_utf8_lossy(text.slice()).into_owned()).unwrap_or_default();
    let path = [compiled_in, folder, text(file.path_name())].iter().collect::<std::path::PathBuf>();
    path.to_string_lossy().into_owned()
}
