//! Writes events as the kernel side does, for tests: the layout once more, by hand, so that a slip in the reader shows.

use sysdock_table::FamilyState;

use crate::{Note, Spool, events::kind};

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

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.body.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn i64(self, value: i64) -> Self {
        self.u64(value.cast_unsigned())
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.body.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u16(mut self, value: u16) -> Self {
        self.body.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn text(mut self, text: &[u8]) -> Self {
        self.body.extend(text);
        self
    }

    fn comm(self, comm: &str) -> Self {
        let mut bytes = [0; 16];
        bytes[..comm.len()].copy_from_slice(comm.as_bytes());
        self.text(&bytes)
    }

    /// The whole event. Its position is left 0: nobody reads it but the ring.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let length = (8 + self.body.len()).next_multiple_of(8);
        let mut out = vec![0; 4];
        out.extend(u16::try_from(length).unwrap().to_le_bytes());
        out.extend([self.kind, self.flags]);
        out.extend(&self.body);
        out.resize(length, 0);
        out
    }

    fn set(mut self, at: usize, value: &[u8]) -> Self {
        self.body[at - 8..at - 8 + value.len()].copy_from_slice(value);
        self
    }

    // Of calls, in the order in which they stand in the event.

    pub(crate) fn fd(self, fd: i32) -> Self {
        self.set(28, &fd.to_le_bytes())
    }

    pub(crate) fn file(self, id: u64) -> Self {
        self.set(40, &id.to_le_bytes())
    }

    pub(crate) fn offset(self, offset: i64) -> Self {
        self.set(48, &offset.to_le_bytes())
    }

    pub(crate) fn extra(self, extra: u64) -> Self {
        self.set(56, &extra.to_le_bytes())
    }

    pub(crate) fn second(mut self, file: u64, offset: i64) -> Self {
        self.flags |= 1;
        self.u64(file).i64(offset)
    }

    pub(crate) fn path(mut self, base: u64, path: &str) -> Self {
        self.flags |= if self.flags & 2 == 0 { 2 } else { 4 };
        let mut block = self.u64(base).u16(u16::try_from(path.len()).unwrap()).u16(0).u32(0).text(path.as_bytes());
        block.body.resize(block.body.len().next_multiple_of(8), 0);
        block
    }

    pub(crate) fn mapping(mut self, length: u64, offset: u64, protection: u32, flags: u32) -> Self {
        self.flags |= 8;
        self.u64(length).u64(offset).u32(protection).u32(flags)
    }

    pub(crate) fn flag(mut self, flag: u8) -> Self {
        self.flags |= flag;
        self
    }
}

/// A call without a descriptor.
pub(crate) fn call(tid: u32, start_ns: u64, duration_ns: u64, number: libc::c_long, result: i64) -> Bytes {
    let number = u64::try_from(number).unwrap();
    let head = Bytes::new(kind::CALL).u64(start_ns).u64(duration_ns << 16 | number).u32(tid);
    head.u32(u32::MAX).i64(result).u64(0).i64(-1).u64(0)
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
    let head = Bytes::new(kind::PATH).u64(id).u64(4242).u32(8 << 20).u16(mode).u16(flags).u32(magic);
    head.u16(u16::try_from(text.len()).unwrap()).u16(u16::try_from(names.len()).unwrap()).u64(0).text(&text)
}

pub(crate) fn fork(at_ns: u64, parent: (u32, u32), child: (u32, u32)) -> Bytes {
    let head = Bytes::new(kind::FORK).u64(at_ns).u32(parent.1).u32(parent.0);
    head.u32(child.1).u32(child.0).comm("child")
}

pub(crate) fn exec(at_ns: u64, (pid, tid): (u32, u32), old_tid: u32, filename: &str, arguments: &str) -> Bytes {
    let comm = &filename[filename.rfind('/').map_or(0, |at| at + 1)..];
    let head = Bytes::new(kind::EXEC).u64(at_ns).u32(tid).u32(pid).u32(old_tid);
    let lengths = head.u16(u16::try_from(filename.len() + 1).unwrap()).u16(u16::try_from(arguments.len()).unwrap());
    lengths.comm(&comm[..comm.len().min(15)]).text(filename.as_bytes()).text(b"\0").text(arguments.as_bytes())
}

pub(crate) fn exit(at_ns: u64, (pid, tid): (u32, u32), status: u32, last: bool) -> Bytes {
    let head = Bytes::new(kind::EXIT).u64(at_ns).u32(tid).u32(pid).u32(status).u32(last.into());
    let head = head.u64(3_000_000).u64(1_000_000).u64(11).u64(12).u64(13).u64(14).u64(15).u64(16);
    head.u64(17).u64(18).u64(19).u64(2_000_000)
}

pub(crate) fn signal(at_ns: u64, tid: u32, signal: i32, code: i32, sender: u32) -> Bytes {
    Bytes::new(kind::SIGNAL).u64(at_ns).u32(tid).u32(signal.cast_unsigned()).u32(code.cast_unsigned()).u32(sender)
}

/// An operation of libaio, by its control block: it begins.
pub(crate) fn aio_submit(at_ns: u64, tid: u32, block: u64, opcode: u32, offset: i64, bytes: i64) -> Bytes {
    let head = Bytes::new(kind::AIO_SUBMIT).u64(at_ns).u64(at_ns - 10).u64(0xc0).u64(block).u64(7);
    head.i64(offset).i64(bytes).u32(tid).u32(3).u32(opcode).u32(0)
}

/// Its result is taken.
pub(crate) fn aio_done(at_ns: u64, tid: u32, block: u64, result: i64) -> Bytes {
    Bytes::new(kind::AIO_DONE).u64(at_ns).u64(0xc0).u64(block).i64(result).u32(tid).u32(0)
}

pub(crate) fn task(started_ns: u64, (pid, tid): (u32, u32), parent: u32, comm: &str, arguments: &str) -> Bytes {
    let head = Bytes::new(kind::TASK).u64(started_ns).u32(tid).u32(pid).u32(parent);
    head.u16(u16::try_from(arguments.len()).unwrap()).u16(0).comm(comm).text(arguments.as_bytes())
}

/// A page fault; `around` is a range of pages. It brought in as many, if the flags say so.
pub(crate) fn fault(
    tid: u32,
    (start_ns, duration_ns): (u64, u64),
    file: u64,
    offset: u64,
    flags: u8,
    around: (u64, u32),
) -> Bytes {
    let head = Bytes::new(kind::FAULT).u64(start_ns).u64(duration_ns).u32(tid).u32(around.1);
    head.u64(0x7f00_0000_0000 + offset).u64(file).u64(offset).u64(around.0).u32(around.1).u32(0).flag(flags)
}

/// A request to a block device; `file` is an id, or 0 and the inode decides, which all files of [`path`] share.
pub(crate) fn page_io(at_ns: u64, tid: u32, (file, inode): (u64, u64), (offset, bytes): (i64, u32), flags: u8) -> Bytes {
    let head = Bytes::new(kind::PAGE_IO).u64(at_ns).u64(file).u64(inode).i64(offset);
    head.u32(8 << 20).u32(bytes).u32(tid).u32(0).flag(flags)
}

/// Write a spool: events of CPUs, between a start and an end. The clocks differ by `EPOCH`.
pub(crate) fn spool(path: &std::path::Path, cpus: &[&[Bytes]]) {
    let mut spool = Spool::create(path).unwrap();
    spool
        .note(&Note::Start(crate::Start {
            command: Some("make all".into()),
            directory: Some("/srv".into()),
            pid: Some(7),
            families: ["faults", "cache"].map(|family| FamilyState { family: family.into(), missing: None }).into(),
            ..Default::default()
        }))
        .unwrap();
    spool.note(&Note::Clock { monotonic_ns: 0, realtime_ns: EPOCH }).unwrap();
    for (cpu, events) in (0..).zip(cpus) {
        events.iter().for_each(|event| spool.append(cpu, &event.bytes()).unwrap());
    }
    spool.flush().unwrap();
    spool.note(&Note::End(crate::End { exit_code: Some(0), ..Default::default() })).unwrap();
}

pub(crate) const EPOCH: i64 = 1_700_000_000_000_000_000;
