//! Probes that users name, and requests made of two of them.
//!
//! ```text
//! u:PATH:FUNCTION(ARGUMENTS)        where a function begins
//! ur:PATH:FUNCTION(TYPE)            where it returns, with its result
//! usdt:PATH:PROVIDER:NAME(ARGUMENTS)
//! t:CATEGORY:EVENT(FIELD,...)       a tracepoint; without a list all its fields
//! ```
//!
//! An argument is `NAME=TYPE` or `TYPE`: i8 to i64, u8 to u64, str.

use std::{fs, path::Path};

use serde::{Deserialize, Serialize};

/// `MOST_PROBES` and `MOST_ARGUMENTS` of `spec.h`.
const MOST_PROBES: usize = 256;
pub(crate) const MOST_ARGUMENTS: usize = 6;
/// Folders of events in tracefs; on older systems it is mounted below debugfs.
const EVENTS: [&str; 2] = ["/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"];

/// What is wrong with a probe, or a request made of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrongProbe {
    /// It has none of the forms of a probe.
    Form,
    /// A request is neither a function nor two probes.
    RequestForm,
    /// The list of arguments does not end.
    Unclosed,
    /// There is no file of this path.
    NoFile(String),
    /// No program or library of this name is found.
    NotFound(String),
    /// More arguments than this.
    TooManyArguments(usize),
    /// More fields than this.
    TooManyFields(usize),
    /// More probes than this.
    TooManyProbes(usize),
    /// The type of an argument is none.
    NoType(String),
    /// Category and event of a tracepoint that does not exist.
    NoTracepoint(String, String),
    /// Tracepoints cannot be seen by this user, or on this machine.
    NoTracefs,
    /// The tracepoint has no such field, but others.
    NoField { name: String, there: Vec<String> },
}

/// Type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    /// A text in memory of the program.
    Str,
    /// A text of a tracepoint at an offset that the lower half of the field contains.
    FarText,
    /// A text of a tracepoint in the field itself.
    NearText,
}

impl Kind {
    fn of(word: &str) -> Option<Kind> {
        Some(match word {
            "i8" => Kind::I8,
            "i16" => Kind::I16,
            "i32" => Kind::I32,
            "i64" => Kind::I64,
            "u8" => Kind::U8,
            "u16" => Kind::U16,
            "u32" => Kind::U32,
            "u64" => Kind::U64,
            "str" => Kind::Str,
            _ => return None,
        })
    }

    fn of_number(bytes: u8, signed: bool) -> Option<Kind> {
        Some(match (bytes, signed) {
            (1, true) => Kind::I8,
            (2, true) => Kind::I16,
            (4, true) => Kind::I32,
            (8, true) => Kind::I64,
            (1, false) => Kind::U8,
            (2, false) => Kind::U16,
            (4, false) => Kind::U32,
            (8, false) => Kind::U64,
            _ => return None,
        })
    }

    pub(crate) fn is_text(self) -> bool {
        matches!(self, Kind::Str | Kind::FarText | Kind::NearText)
    }
}

/// An argument of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Argument {
    /// Name in a recording.
    pub name: String,
    pub kind: Kind,
    /// For a tracepoint: offset in its data, and length [B].
    pub place: Option<(u16, u8)>,
}

/// The place of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum At {
    /// Where a function begins: file and function.
    Entry(String, String),
    /// Where a function returns: file and function.
    Return(String, String),
    /// File, provider and name.
    Usdt(String, String, String),
    /// Category and event.
    Tracepoint(String, String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// As the user wrote it.
    pub text: String,
    pub at: At,
    /// The arguments that are recorded.
    pub arguments: Vec<Argument>,
}

impl Probe {
    /// Parse a probe.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Probe, WrongProbe> {
        let (place, list) = match text.split_once('(') {
            None => (text, None),
            Some((place, rest)) => (place, Some(rest.strip_suffix(')').ok_or(WrongProbe::Unclosed)?)),
        };
        let words: Vec<&str> = place.split(':').collect();
        if words.iter().any(|word| word.is_empty()) {
            return Err(WrongProbe::Form);
        }
        let at = match words[..] {
            ["u", path, function] => At::Entry(found(path)?, function.into()),
            ["ur", path, function] => At::Return(found(path)?, function.into()),
            ["usdt", path, provider, name] => At::Usdt(found(path)?, provider.into(), name.into()),
            ["t", category, event] => At::Tracepoint(category.into(), event.into()),
            _ => return Err(WrongProbe::Form),
        };
        let list: Option<Vec<&str>> = list.map(|list| list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect());
        let arguments = match (&at, list) {
            (At::Tracepoint(category, event), list) => fields(&format_of(category, event)?, list.as_deref())?,
            (At::Return(..), None) => vec![Argument { name: "result".into(), kind: Kind::I64, place: None }],
            (at, list) => arguments(list.as_deref().unwrap_or_default(), matches!(at, At::Return(..)))?,
        };
        Ok(Probe { text: text.into(), at, arguments })
    }

    /// Name in a recording.
    pub(crate) fn name(&self) -> &str {
        match &self.at {
            At::Entry(_, name) | At::Return(_, name) | At::Usdt(_, _, name) | At::Tracepoint(_, name) => name,
        }
    }

    /// The values of `probe_events.kind`.
    pub(crate) fn kind(&self) -> &'static str {
        match self.at {
            At::Entry(..) => "entry",
            At::Return(..) => "return",
            At::Usdt(..) => "usdt",
            At::Tracepoint(..) => "tracepoint",
        }
    }

    /// The file; of a tracepoint, the category.
    pub(crate) fn place(&self) -> &str {
        match &self.at {
            At::Entry(place, _) | At::Return(place, _) | At::Usdt(place, ..) | At::Tracepoint(place, _) => place,
        }
    }
}

/// A request: the time between two probes of one thread or, if both have an argument `id`, of equal
/// ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub name: String,
    /// Index of the probe at its beginning.
    pub begin: usize,
    /// Index of the probe at its end.
    pub end: usize,
}

/// All probes and requests of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProbeList {
    /// In the order of their numbers.
    pub probes: Vec<Probe>,
    /// Requests made of these probes.
    pub requests: Vec<Request>,
    /// Whether stacks are recorded.
    pub stacks: bool,
}

/// The value of `--request`: the beginning and the end of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// As the user wrote it.
    pub text: String,
    pub begin: Probe,
    pub end: Probe,
}

impl Ends {
    /// Parse `PROBE -> PROBE`, or a function (`u:`), which is a request from its beginning to its
    /// return.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Ends, WrongProbe> {
        if let Some((begin, end)) = text.split_once("->") {
            return Ok(Ends { text: text.into(), begin: Probe::parse(begin.trim())?, end: Probe::parse(end.trim())? });
        }
        let begin = Probe::parse(text)?;
        let At::Entry(path, function) = &begin.at else {
            return Err(WrongProbe::RequestForm);
        };
        let end = Probe::parse(&format!("ur:{path}:{function}"))?;
        Ok(Ends { text: text.into(), begin, end })
    }
}

impl ProbeList {
    /// Combine requested probes and requests. Equal probes have one number.
    ///
    /// # Errors
    /// There are too many.
    pub fn new(probes: &[Probe], requests: &[Ends], stacks: bool) -> Result<ProbeList, WrongProbe> {
        let mut probe_list = ProbeList { stacks, ..ProbeList::default() };
        probes.iter().for_each(|probe| _ = probe_list.number(probe));
        for Ends { begin, end, .. } in requests {
            let (begin, end, name) = (probe_list.number(begin), probe_list.number(end), begin.name().to_string());
            probe_list.requests.push(Request { name, begin, end });
        }
        if probe_list.probes.len() > MOST_PROBES { Err(WrongProbe::TooManyProbes(MOST_PROBES)) } else { Ok(probe_list) }
    }

    fn number(&mut self, probe: &Probe) -> usize {
        self.probes.iter().position(|known| known == probe).unwrap_or_else(|| {
            self.probes.push(probe.clone());
            self.probes.len() - 1
        })
    }
}

/// Path of a program or library. A name without a folder is searched for.
fn found(path: &str) -> Result<String, WrongProbe> {
    const LIBRARIES: &str = "/usr/local/lib:/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib";
    let whole = |path: &Path| path.canonicalize().ok().filter(|path| path.is_file()).map(|path| path.display().to_string());
    if path.contains('/') {
        return whole(Path::new(path)).ok_or_else(|| WrongProbe::NoFile(path.into()));
    }
    let folders = std::env::var("PATH").unwrap_or_default();
    let mut places = folders.split(':').chain(LIBRARIES.split(':')).filter(|folder| !folder.is_empty());
    let place = places.find_map(|folder| whole(&Path::new(folder).join(path)));
    place.ok_or_else(|| WrongProbe::NotFound(path.into()))
}

fn arguments(list: &[&str], is_result: bool) -> Result<Vec<Argument>, WrongProbe> {
    let most = if is_result { 1 } else { MOST_ARGUMENTS };
    if list.len() > most {
        return Err(WrongProbe::TooManyArguments(most));
    }
    let argument = |(number, word): (usize, &&str)| {
        let (name, kind) = word.split_once('=').map_or((None, *word), |(name, kind)| (Some(name.trim()), kind.trim()));
        let kind = Kind::of(kind).ok_or_else(|| WrongProbe::NoType(kind.into()))?;
        let usual = || if is_result { "result".into() } else { format!("arg{}", number + 1) };
        Ok(Argument { name: name.map_or_else(usual, Into::into), kind, place: None })
    };
    list.iter().enumerate().map(argument).collect()
}

fn format_of(category: &str, event: &str) -> Result<String, WrongProbe> {
    if [category, event].iter().any(|word| word.contains(['/', '.'])) {
        return Err(WrongProbe::Form);
    }
    let read = |folder: &&str| fs::read_to_string(format!("{folder}/{category}/{event}/format")).ok();
    EVENTS.iter().find_map(read).ok_or_else(|| {
        if EVENTS.iter().any(|folder| Path::new(folder).join("sched").is_dir()) {
            WrongProbe::NoTracepoint(category.into(), event.into())
        } else {
            WrongProbe::NoTracefs
        }
    })
}

/// Fields of a tracepoint from its format (Documentation/trace/events.rst): the named ones, or all
/// that can be recorded.
fn fields(format: &str, names: Option<&[&str]>) -> Result<Vec<Argument>, WrongProbe> {
    let all: Vec<Argument> = format.lines().filter_map(field).collect();
    let Some(names) = names else { return Ok(all.into_iter().take(MOST_ARGUMENTS).collect()) };
    if names.len() > MOST_ARGUMENTS {
        return Err(WrongProbe::TooManyFields(MOST_ARGUMENTS));
    }
    let named = |name: &&str| {
        all.iter().find(|field| field.name == **name).cloned().ok_or_else(|| WrongProbe::NoField {
            name: (*name).into(),
            there: all.iter().map(|field| field.name.clone()).collect(),
        })
    };
    names.iter().map(named).collect()
}

/// Parse a line such as `field:__data_loc char[] filename; offset:8; size:4; signed:0;`. `None`: it
/// is no field, or cannot be recorded.
fn field(line: &str) -> Option<Argument> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declared = parts.next()?.strip_prefix("field:")?;
    let number = |part: &str, key: &str| part.strip_prefix(key)?.strip_prefix(':')?.parse::<u16>().ok();
    let (offset, size) = (number(parts.next()?, "offset")?, number(parts.next()?, "size")?);
    let signed = parts.next()? == "signed:1";
    let (kind, name) = declared.rsplit_once([' ', '*'])?;
    let plain = name.split('[').next()?;
    if plain.starts_with("common_") {
        return None;
    }
    let (kind, bytes) = match (kind.starts_with("__data_loc"), name.contains('[')) {
        (true, _) if kind.contains("char") => (Kind::FarText, 4),
        (false, true) if kind.ends_with("char") => (Kind::NearText, 0),
        (false, false) => (Kind::of_number(u8::try_from(size).ok()?, signed)?, size as u8),
        _ => return None,
    };
    Some(Argument { name: plain.into(), kind, place: Some((offset, bytes)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(arguments: &[Argument]) -> Vec<String> {
        arguments.iter().map(|argument| format!("{} {:?} {:?}", argument.name, argument.kind, argument.place)).collect()
    }

    #[test]
    fn functions_are_found_along_the_path_and_among_libraries() {
        let probe = Probe::parse("u:sh:main(argc=i32, str)").unwrap();
        assert_eq!((probe.name(), probe.kind()), ("main", "entry"));
        assert!(probe.place().starts_with('/'));
        assert_eq!(shown(&probe.arguments), ["argc I32 None", "arg2 Str None"]);
        let probe = Probe::parse("ur:libc.so.6:getpid").unwrap();
        assert_eq!(shown(&probe.arguments), ["result I64 None"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |text: &str| Probe::parse(text).unwrap_err();
        assert_eq!(wrong("u:sh"), WrongProbe::Form);
        assert_eq!(wrong("x:sh:main"), WrongProbe::Form);
        assert_eq!(wrong("u:/no/where:main"), WrongProbe::NoFile("/no/where".into()));
        assert_eq!(wrong("u:sh:main(i33)"), WrongProbe::NoType("i33".into()));
        assert_eq!(wrong("u:sh:main(i32"), WrongProbe::Unclosed);
        assert_eq!(wrong("u:sh:main(i8,i8,i8,i8,i8,i8,i8)"), WrongProbe::TooManyArguments(6));
        assert_eq!(wrong("ur:sh:main(i8,i8)"), WrongProbe::TooManyArguments(1));
        assert_eq!(Ends::parse("ur:sh:main").unwrap_err(), WrongProbe::RequestForm);
    }

    #[test]
    fn fields_of_tracepoints_lie_where_their_format_says() {
        let format = "name: sched_process_exec\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
                      \tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n\
                      \tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n\tfield:char comm[16];\toffset:16;\tsize:16;\tsigned:0;\n\
                      \tfield:const void * call_site;\toffset:32;\tsize:8;\tsigned:0;\n\tfield:u8 hash[20];\toffset:40;\tsize:20;\tsigned:0;\n\
                      \nprint fmt: \"x\"\n";
        let all = [
            "filename FarText Some((8, 4))",
            "pid I32 Some((12, 4))",
            "comm NearText Some((16, 0))",
            "call_site U64 Some((32, 8))",
        ];
        assert_eq!(shown(&fields(format, None).unwrap()), all);
        assert_eq!(shown(&fields(format, Some(&["pid"])).unwrap()), [all[1]]);
        let there = ["filename", "pid", "comm", "call_site"].map(String::from).to_vec();
        assert_eq!(fields(format, Some(&["uid"])), Err(WrongProbe::NoField { name: "uid".into(), there }));
    }

    #[test]
    fn a_function_is_a_request_and_equal_probes_are_one() {
        let ends = Ends::parse("u:sh:main(i32)").unwrap();
        let probe = Probe::parse("u:sh:main(i32)").unwrap();
        let pair = Ends::parse("u:sh:main(i32) -> u:sh:exit").unwrap();
        let probe_list = ProbeList::new(&[probe], &[ends, pair], false).unwrap();
        let numbers: Vec<_> =
            probe_list.requests.iter().map(|request| (request.name.as_str(), request.begin, request.end)).collect();
        assert_eq!((probe_list.probes.len(), numbers), (3, vec![("main", 0, 1), ("main", 0, 2)]));
    }
}
