//! Writes events as the kernel side does, for tests, and reads back the resulting tables.

use std::{cell::Cell, collections::HashMap, fs, path::Path};

use parquet::{
    file::{reader::FileReader, serialized_reader::SerializedFileReader},
    record::Field,
};
use sysdock_table::{Access, Cancel, FamilyState, Folder, Manifest, Recording, TableEntry};

use crate::{
    BpfError, FAMILIES, Family, Note, SPOOL, Spool, convert,
    events::{
        CALL_MAPPING, CALL_PATH, CALL_POSITIONS, CALL_SECOND_FILE, CALL_SECOND_PATH, CallEvent, CallMapping, CallPath,
        CallSecondFile, EVENT_CALL, EVENT_EXEC, EVENT_EXIT, EVENT_FORK, EVENT_PATH, EVENT_SIGNAL, EVENT_TASK, ExecEvent,
        ExitEvent, ForkEvent, Layout, PathEvent, SignalEvent, TaskEvent,
    },
    probe_list::ProbeList,
};

thread_local! {
    /// Set by a thread that reads made-up frames, which no checksum fits.
    pub(crate) static UNCHECKED: Cell<bool> = const { Cell::new(false) };
}

/// Numbers that look random and are the same each time (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// An event under construction.
#[derive(Clone, Debug)]
pub(crate) struct Bytes {
    kind: u8,
    pub(crate) flags: u8,
    pub(crate) body: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(kind: u8) -> Self {
        Bytes { kind, flags: 0, body: Vec::new() }
    }

    /// An event with its fixed part.
    pub(crate) fn of<L: Layout>(kind: u8, fixed: &L) -> Self {
        let mut whole = vec![0; L::BYTES];
        fixed.write(&mut whole);
        Bytes { kind, flags: 0, body: whole.split_off(8) }
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.text(&value.to_le_bytes())
    }

    pub(crate) fn text(mut self, text: &[u8]) -> Self {
        self.body.extend(text);
        self
    }

    /// Append a structure after the fixed part.
    fn with<L: Layout>(mut self, part: &L) -> Self {
        let start = self.body.len();
        self.body.resize(start + L::BYTES, 0);
        part.write(&mut self.body[start..]);
        self
    }

    /// The whole event. Its position stays 0: only the ring reads it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let length = (8 + self.body.len()).next_multiple_of(8);
        let mut out = vec![0; 4];
        out.extend(u16::try_from(length).unwrap().to_le_bytes());
        out.extend([self.kind, self.flags]);
        out.extend(&self.body);
        out.resize(length, 0);
        out
    }

    // Parts of the events of calls, in the order in which they follow the fixed part.

    fn call(mut self, change: impl FnOnce(&mut CallEvent)) -> Self {
        let mut whole = [&[0; 8], &self.body[..]].concat();
        let mut call = CallEvent::read(&whole).expect("an event of a call");
        change(&mut call);
        call.write(&mut whole);
        self.body = whole.split_off(8);
        self
    }

    pub(crate) fn fd(self, fd: i32) -> Self {
        self.call(|call| call.fd = fd)
    }

    pub(crate) fn file(self, id: u64) -> Self {
        self.call(|call| call.file = id)
    }

    pub(crate) fn offset(self, offset: i64) -> Self {
        self.call(|call| call.offset = offset)
    }

    pub(crate) fn extra(self, extra: u64) -> Self {
        self.call(|call| call.extra = extra)
    }

    pub(crate) fn second(self, file: u64, offset: i64) -> Self {
        self.second_at(file, offset, -1, 0)
    }

    /// A second file; `at_position`: which of the two offsets are those of positions.
    pub(crate) fn second_at(self, file: u64, offset: i64, fd: i32, at_position: u32) -> Self {
        self.at_position().flag(CALL_SECOND_FILE).with(&CallSecondFile { file, offset, fd, at_position })
    }

    /// The offset argument meant the position.
    pub(crate) fn at_position(self) -> Self {
        self.call(|call| call.duration_ns_and_number |= u64::from(CALL_POSITIONS))
    }

    pub(crate) fn path(self, base: u64, path: &str) -> Self {
        let flag = if u32::from(self.flags) & CALL_PATH == 0 { CALL_PATH } else { CALL_SECOND_PATH };
        let head = CallPath { base, length: u16::try_from(path.len()).unwrap(), flags: 0 };
        let mut block = self.flag(flag).with(&head).text(path.as_bytes());
        block.body.resize(block.body.len().next_multiple_of(8), 0);
        block
    }

    pub(crate) fn mapping(self, length: u64, offset: u64, protection: u32, flags: u32) -> Self {
        self.flag(CALL_MAPPING).with(&CallMapping { length, offset, protection, flags })
    }

    pub(crate) fn flag(mut self, flag: u32) -> Self {
        self.flags |= u8::try_from(flag).unwrap();
        self
    }
}

fn comm(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    bytes
}

/// A call without a descriptor.
pub(crate) fn call(tid: u32, start_ns: u64, duration_ns: u64, number: libc::c_long, result: i64) -> Bytes {
    let duration_ns_and_number = duration_ns << 16 | u64::try_from(number).unwrap();
    let fixed = CallEvent { start_ns, duration_ns_and_number, tid, fd: -1, result, offset: -1, ..CallEvent::default() };
    Bytes::of(EVENT_CALL, &fixed)
}

/// A regular file on ext4; names from the leaf to the root.
pub(crate) fn path(id: u64, names: &[&str]) -> Bytes {
    place(id, names, 0o100_644, 0xef53, 0)
}

pub(crate) fn place(id: u64, names: &[&str], mode: u16, magic: u32, flags: u16) -> Bytes {
    let mut text = Vec::new();
    for name in names {
        text.push(u8::try_from(name.len()).unwrap());
        text.extend(name.as_bytes());
    }
    let (length, count) = (u16::try_from(text.len()).unwrap(), u16::try_from(names.len()).unwrap());
    let fixed = PathEvent { id, inode: 4242, device: 8 << 20, mode, flags, magic, length, count, size: 0 };
    Bytes::of(EVENT_PATH, &fixed).text(&text)
}

pub(crate) fn fork(at_ns: u64, parent: (u32, u32), (pid, tid): (u32, u32)) -> Bytes {
    let (parent_pid, parent_tid) = parent;
    Bytes::of(EVENT_FORK, &ForkEvent { at_ns, parent_tid, parent_pid, tid, pid, user_id: 1000, comm: comm("child") })
}

pub(crate) fn exec(at_ns: u64, (pid, tid): (u32, u32), old_tid: u32, filename: &str, arguments: &str) -> Bytes {
    let name = &filename[filename.rfind('/').map_or(0, |at| at + 1)..];
    let comm = comm(&name[..name.len().min(15)]);
    let filename_length = u16::try_from(filename.len() + 1).unwrap();
    let arguments_length = u16::try_from(arguments.len()).unwrap();
    let fixed = ExecEvent { at_ns, tid, pid, old_tid, filename_length, arguments_length, user_id: 1001, comm };
    Bytes::of(EVENT_EXEC, &fixed).text(filename.as_bytes()).text(b"\0").text(arguments.as_bytes())
}

pub(crate) fn exit(at_ns: u64, (pid, tid): (u32, u32), status: u32, last: bool) -> Bytes {
    let fixed = ExitEvent {
        at_ns,
        tid,
        pid,
        status,
        last: last.into(),
        user_id: 1002,
        user_ns: 3_000_000,
        system_ns: 1_000_000,
        minor_faults: 11,
        major_faults: 12,
        read_chars: 13,
        write_chars: 14,
        read_calls: 15,
        write_calls: 16,
        read_bytes: 17,
        write_bytes: 18,
        cancelled_bytes: 19,
        cpu_ns: 2_000_000,
        comm: comm("worker"),
    };
    Bytes::of(EVENT_EXIT, &fixed)
}

pub(crate) fn signal(at_ns: u64, tid: u32, signal: i32, code: i32, sender_pid: u32) -> Bytes {
    Bytes::of(EVENT_SIGNAL, &SignalEvent { at_ns, tid, signal, code, sender_pid })
}

pub(crate) fn task(started_ns: u64, (pid, tid): (u32, u32), parent_pid: u32, name: &str, arguments: &str) -> Bytes {
    let arguments_length = u16::try_from(arguments.len()).unwrap();
    let fixed = TaskEvent { started_ns, tid, pid, parent_pid, user_id: 1003, arguments_length, comm: comm(name) };
    Bytes::of(EVENT_TASK, &fixed).text(arguments.as_bytes())
}

/// A new spool in this folder.
pub(crate) fn spool_in(folder: &Path) -> Spool {
    try_spool_in(folder).unwrap()
}

pub(crate) fn try_spool_in(folder: &Path) -> Result<Spool, BpfError> {
    Spool::create(&Folder::open(folder, Access::default()).unwrap())
}

/// Write a spool into a folder: events of CPUs, between a start and an end. The clocks differ by
/// `EPOCH`.
pub(crate) fn write_spool(folder: &Path, cpus: &[&[Bytes]]) {
    write_spool_of(folder, cpus, ProbeList::default());
}

fn write_spool_of(folder: &Path, cpus: &[&[Bytes]], probe_list: ProbeList) {
    // The other two are recorded alongside others, and have no tables of their own.
    let recorded = |family: &&Family| !["uring", "stacks"].contains(&family.name);
    let state = |family: &Family| FamilyState { family: family.name.into(), missing: None };
    let mut spool = spool_in(folder);
    spool
        .note(&Note::Start(Box::new(crate::Start {
            command: Some("make all".into()),
            directory: Some("/srv".into()),
            pid: Some(7),
            sample_period_ns: Some(5_000_000),
            probe_list,
            families: FAMILIES.iter().filter(recorded).map(state).collect(),
            ..Default::default()
        })))
        .unwrap();
    spool.note(&Note::Clock { monotonic_ns: 0, realtime_ns: EPOCH }).unwrap();
    for (cpu, events) in (0..).zip(cpus) {
        events.iter().for_each(|event| spool.append(cpu, &event.bytes()).unwrap());
    }
    spool.flush().unwrap();
    spool.note(&Note::End(crate::End { exit_code: Some(0), ..Default::default() })).unwrap();
}

pub(crate) const EPOCH: i64 = 1_700_000_000_000_000_000;

/// The tables of a recording, read back.
pub(crate) struct Tables {
    pub(crate) manifest: Manifest,
    pub(crate) rows: HashMap<String, Vec<HashMap<String, String>>>,
}

impl Tables {
    pub(crate) fn of(cpus: &[&[Bytes]]) -> Tables {
        Tables::with_places(cpus, ProbeList::default())
    }

    /// The tables of a recording with these probes.
    pub(crate) fn with_places(cpus: &[&[Bytes]], probe_list: ProbeList) -> Tables {
        let folder = tempfile::tempdir().unwrap();
        let spool = folder.path().join(SPOOL);
        write_spool_of(folder.path(), cpus, probe_list);
        Tables::converted(folder.path(), &spool)
    }

    pub(crate) fn converted(folder: &Path, spool: &Path) -> Tables {
        let rec = folder.join("rec");
        let mut recording = Recording::create(&rec, crate::manifest()).unwrap();
        let ending = convert(spool, &mut recording, &Cancel::default(), &mut |_| {}).unwrap();
        Tables::read(&rec, recording.finish(ending).unwrap())
    }

    pub(crate) fn read(folder: &Path, manifest: Manifest) -> Tables {
        // Tables of families that were not recorded do not exist.
        let part = |file: &String| read_part(&folder.join(file));
        let read = |entry: &TableEntry| entry.parts.iter().flat_map(|entry| part(&entry.file)).collect();
        let rows = manifest.tables.iter().map(|(table, entry)| (table.clone(), read(entry))).collect();
        Tables { manifest, rows }
    }

    /// Rows as text, `-` for NULL; `path`, `to_path` and `comm` in place of their ids.
    pub(crate) fn show(&self, table: &str, columns: &str) -> Vec<String> {
        let value = |row: &HashMap<String, String>, column: &str| {
            let (id, of, name) = match column {
                "path" if table != "paths" => ("path_id", "paths", "path"),
                "to_path" => ("to_path_id", "paths", "path"),
                "comm" if table != "commands" => ("comm_id", "commands", "comm"),
                _ => return row[column].clone(),
            };
            row[id].parse::<usize>().map_or("-".into(), |id| self.rows[of][id][name].clone())
        };
        let columns: Vec<&str> = columns.split(' ').collect();
        let show = |row| columns.iter().map(|column| value(row, column)).collect::<Vec<_>>().join(" ");
        self.rows[table].iter().map(show).collect()
    }
}

fn read_part(part: &Path) -> Vec<HashMap<String, String>> {
    let reader = SerializedFileReader::new(fs::File::open(part).unwrap()).unwrap();
    let cells = |row: parquet::record::Row| row.get_column_iter().map(|(name, field)| (name.clone(), cell(field))).collect();
    reader.get_row_iter(None).unwrap().map(|row| cells(row.unwrap())).collect()
}

fn cell(field: &Field) -> String {
    match field {
        Field::Null => "-".into(),
        Field::Bool(value) => value.to_string(),
        Field::Int(value) => value.to_string(),
        Field::Long(value) => value.to_string(),
        Field::Double(value) => value.to_string(),
        Field::Str(value) => value.clone(),
        other => panic!("no table has columns like {other}"),
    }
}

/// A row whose first column, a time, is relative to the start.
pub(crate) fn relative(row: &str) -> String {
    let (time, rest) = row.split_once(' ').unwrap();
    format!("{} {rest}", time.parse::<i64>().unwrap() - EPOCH)
}
