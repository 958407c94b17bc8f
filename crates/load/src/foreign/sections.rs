//! Finds the sections of a log that are output of a tool.

use sysdock_table::facts::load_logs as facts;

use super::{Log, Tool, elbencho, fio, ior, json, mdtest};

/// What a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    Ior,
    IorCsv,
    Mdtest,
    Elbencho,
    ElbenchoCsv,
    Json,
}

/// What this line begins, if anything.
fn start(line: &str) -> Option<Start> {
    let line = line.trim_end();
    if line.starts_with("IOR-") && line.contains("MPI Coordinated Test") {
        Some(Start::Ior)
    } else if line.starts_with("access,bw(MiB/s),") {
        Some(Start::IorCsv)
    } else if line.starts_with("mdtest-") && line.contains("was launched with") {
        Some(Start::Mdtest)
    } else if line.starts_with("OPERATION") && line.contains("RESULT TYPE") {
        Some(Start::Elbencho)
    } else if line.contains("operation,") && line.contains("time ms [first]") {
        Some(Start::ElbenchoCsv)
    } else if line.starts_with('{') {
        Some(Start::Json)
    } else {
        None
    }
}

/// Whether a line is that of a call in strace's output: then the rest is the log of a traced tool.
fn is_call(line: &str) -> bool {
    let before_result = line.split(") = ").next().unwrap_or_default();
    before_result.len() < line.len() && before_result.contains('(')
}

/// The tool whose output a log begins with, as far as `text` extends.
pub(super) fn first_tool(text: &str) -> Option<Tool> {
    let mut rest = text;
    while !rest.is_empty() {
        let line = rest.split('\n').next().unwrap_or_default();
        let found = match start(line) {
            Some(Start::Ior | Start::IorCsv) => Some(Tool::Ior),
            Some(Start::Mdtest) => Some(Tool::Mdtest),
            Some(Start::Elbencho | Start::ElbenchoCsv) => Some(Tool::Elbencho),
            Some(Start::Json) => tool_of_json(rest),
            None if is_call(line) => return None,
            None => None,
        };
        if found.is_some() {
            return found;
        }
        rest = rest.get(line.len() + 1..).unwrap_or_default();
    }
    None
}

/// Determine the tool by keys that only one tool writes, near the beginning of its documents.
fn tool_of_json(text: &str) -> Option<Tool> {
    let head: String = text.chars().take(4096).collect();
    let has = |key: &str| head.contains(key);
    if has("\"fio version\"") {
        Some(Tool::Fio)
    } else if has("\"phase_type\"") && has("\"phase_id\"") {
        Some(Tool::Elbencho)
    } else if has("\"Began\"") && has("\"Command line\"") {
        Some(Tool::Ior)
    } else {
        None
    }
}

/// Read all sections of a log.
pub(super) fn read(text: &str, log: &mut Log) {
    let (mut place, mut line) = (0, 1);
    // Files of elbencho contain its command line before each table.
    let mut elbencho = elbencho::Past::default();
    while place < text.len() {
        let rest = &text[place..];
        let first = rest.split_inclusive('\n').next().unwrap_or_default();
        log.line = line;
        let taken = match start(first) {
            Some(Start::Json) => document(rest, first, &mut elbencho, log),
            Some(kind) => {
                let section = section(rest, first);
                match kind {
                    Start::Ior => ior::read_text(section, log),
                    Start::IorCsv => ior::read_csv(section, log),
                    Start::Mdtest => mdtest::read(section, log),
                    Start::Elbencho => elbencho::read_text(section, &mut elbencho, log),
                    Start::ElbenchoCsv | Start::Json => elbencho::read_csv(section, &mut elbencho, log),
                }
                section.len()
            }
            None => {
                elbencho.see(first);
                first.len()
            }
        };
        line += text[place..place + taken].matches('\n').count() as u64;
        place += taken;
    }
}

/// The text before the next section.
fn section<'a>(rest: &'a str, first: &str) -> &'a str {
    let mut end = first.len();
    for line in rest[end..].split_inclusive('\n') {
        if start(line).is_some() || line.starts_with("ISO DATE:") {
            break;
        }
        end += line.len();
    }
    &rest[..end]
}

/// Read the document at this position. Returns its length in bytes.
fn document(rest: &str, first: &str, past: &mut elbencho::Past, log: &mut Log) -> usize {
    let tool = tool_of_json(rest);
    match json::document(rest) {
        json::Document::Whole(value, bytes) => {
            match tool {
                Some(Tool::Fio) => fio::read(&value, log),
                Some(Tool::Ior) => ior::read_json(&value, log),
                Some(Tool::Elbencho) => elbencho::read_json(&value, past, log),
                _ => {}
            }
            bytes
        }
        json::Document::Cut if tool.is_some() => {
            log.tools.extend(tool);
            log.broken(log.line, first, facts::ends_within_document());
            rest.len()
        }
        json::Document::Broken(_) if tool == Some(Tool::Ior) => {
            let section = section(rest, first);
            ior::read_broken_json(section, log);
            section.len()
        }
        json::Document::Broken(error) if tool.is_some() => {
            log.tools.extend(tool);
            log.broken(log.line, first, facts::no_json(error.to_string()));
            first.len()
        }
        _ => first.len(),
    }
}
