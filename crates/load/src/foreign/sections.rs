//! Finds the sections of a log that are output of a tool.

use sysdock_table::facts::load_logs as facts;

use super::{Log, Reader, Tool, json};

/// Number of characters at the beginning of a document that show what wrote it.
const HEAD: usize = 4096;

type Readers = [Box<dyn Reader>];

/// What a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// A section that the reader with this number reads.
    Section(usize),
    Document,
}

/// What this line begins, if anything.
fn start(line: &str, readers: &Readers) -> Option<Start> {
    let line = line.trim_end();
    let section = readers.iter().position(|reader| reader.begins(line)).map(Start::Section);
    section.or_else(|| line.starts_with('{').then_some(Start::Document))
}

/// Whether a line is that of a call in strace's output: then the rest is the log of a traced tool.
fn is_call(line: &str) -> bool {
    let before_result = line.split(") = ").next().unwrap_or_default();
    before_result.len() < line.len() && before_result.contains('(')
}

/// The tool whose output a log begins with, as far as `text` extends.
pub(super) fn first_tool(text: &str, readers: &Readers) -> Option<Tool> {
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.split('\n').next().unwrap_or_default();
        let found = match start(line, readers) {
            Some(Start::Section(number)) => Some(number),
            Some(Start::Document) => of_document(rest, readers),
            None if is_call(line) => return None,
            None => None,
        };
        if let Some(number) = found {
            return Some(readers[number].tool());
        }
        rest = rest.get(line.len() + 1..).unwrap_or_default();
    }
    None
}

/// The number of the reader of a document, by keys near its beginning.
fn of_document(text: &str, readers: &Readers) -> Option<usize> {
    let head: String = text.chars().take(HEAD).collect();
    readers.iter().position(|reader| reader.begins_document(&head))
}

/// Read all sections of a log.
pub(super) fn read(text: &str, readers: &mut Readers, log: &mut Log) {
    let (mut place, mut line) = (0, 1);
    while place < text.len() {
        let rest = &text[place..];
        let first = rest.split_inclusive('\n').next().unwrap_or_default();
        log.line = line;
        let taken = match start(first, readers) {
            Some(Start::Section(number)) => {
                let section = section(rest, first, readers);
                log.tools.insert(readers[number].tool());
                readers[number].read_section(section, log);
                section.len()
            }
            Some(Start::Document) => document(rest, first, readers, log),
            None => {
                readers.iter_mut().for_each(|reader| reader.see(first));
                first.len()
            }
        };
        line += text[place..place + taken].matches('\n').count() as u64;
        place += taken;
    }
}

/// The text before the next section.
fn section<'a>(rest: &'a str, first: &str, readers: &Readers) -> &'a str {
    let mut end = first.len();
    for line in rest[end..].split_inclusive('\n') {
        if start(line, readers).is_some() || line.starts_with("ISO DATE:") {
            break;
        }
        end += line.len();
    }
    &rest[..end]
}

/// Read the document at this position. Returns its length in bytes.
fn document(rest: &str, first: &str, readers: &mut Readers, log: &mut Log) -> usize {
    let parsed = json::document(rest);
    let Some(number) = of_document(rest, readers) else {
        return if let json::Document::Whole(_, bytes) = parsed { bytes } else { first.len() };
    };
    log.tools.insert(readers[number].tool());
    match parsed {
        json::Document::Whole(value, bytes) => {
            readers[number].read_document(&value, log);
            bytes
        }
        json::Document::Cut => {
            log.broken(log.line, first, facts::ends_within_document());
            rest.len()
        }
        json::Document::Broken(error) => {
            let section = section(rest, first, readers);
            if readers[number].read_damaged(section, log) {
                return section.len();
            }
            log.broken(log.line, first, facts::no_json(error));
            first.len()
        }
    }
}
