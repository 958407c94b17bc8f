//! The memory of a running guest of qemu. Its monitor (QMP) tells where it is in the memory of
//! qemu, from which it is then read.
//!
//! Protocol: qemu's docs/interop/qmp-spec.rst. It has no command for addresses and registers, only
//! the text of the human monitor (`info mtree -f`, `gpa2hva`, `info registers -a`).

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    mem,
    os::unix::{fs::FileExt, net::UnixStream},
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};

use sysdock_table::facts::dump as facts;

use super::{
    About, Physical, Registers,
    segments::{Segment, Segments},
};
use crate::error::{DumpError, Fault, NoDump, NotReadable, io_error};

/// A monitor serves one client at a time, and does not answer others.
const PATIENCE: Duration = Duration::from_secs(10);
/// Limits for what is no monitor of qemu: length of a line [B], lines before an answer, ranges of
/// memory.
const LONGEST_LINE: u64 = 16 << 20;
const MOST_EVENTS: usize = 10_000;
const MOST_RANGES: usize = 10_000;
/// Index in `elf_prstatus` of each register that qemu names.
const REGISTERS: [(&str, usize); 18] = [
    ("R15", 0),
    ("R14", 1),
    ("R13", 2),
    ("R12", 3),
    ("RBP", 4),
    ("RBX", 5),
    ("R11", 6),
    ("R10", 7),
    ("R9", 8),
    ("R8", 9),
    ("RAX", 10),
    ("RCX", 11),
    ("RDX", 12),
    ("RSI", 13),
    ("RDI", 14),
    ("RIP", 16),
    ("RFL", 18),
    ("RSP", 19),
];
const CODE_SEGMENT: usize = 17;

/// A running guest.
#[derive(Debug)]
pub struct Guest {
    socket: PathBuf,
    memory: File,
    segments: Segments,
    registers: Vec<Registers>,
}

impl Guest {
    /// Ask the monitor at this socket for the location of its guest's memory. The guest continues
    /// to run, and the monitor is free again afterwards.
    ///
    /// # Errors
    /// [`DumpError`]: no process listens there, or it is no monitor, or the memory of qemu may not
    /// be read.
    pub fn connect(socket: &Path) -> Result<Guest, DumpError> {
        let stream = UnixStream::connect(socket).map_err(io_error(socket))?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(io_error(socket))?;
        // The process at the other end.
        let peer = rustix::net::sockopt::socket_peercred(&stream).map_err(|error| io_error(socket)(error.into()))?;
        let pid = peer.pid.as_raw_nonzero();
        let (segments, registers) = Monitor { socket, lines: BufReader::new(&stream), requests: &stream }.ask()?;
        let memory = format!("/proc/{pid}/mem");
        let memory = File::open(&memory).map_err(io_error(Path::new(&memory)))?;
        Ok(Guest { socket: socket.into(), memory, segments, registers })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(super) fn into_memory(mut self) -> (Box<dyn Physical>, About) {
        let registers = mem::take(&mut self.registers);
        let about = About { format: "qemu guest", registers, remarks: vec![facts::kernel_ran()], ..About::default() };
        (Box::new(self), about)
    }
}

impl Physical for Guest {
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        let place = self.segments.place(address, out.len() as u64).ok_or(Fault::NotInDump)?;
        self.memory.read_exact_at(out, place).map_err(|_| Fault::NotInDump)
    }

    fn pages(&self) -> u64 {
        self.segments.pages()
    }

    fn next_page(&self, address: u64) -> Option<u64> {
        self.segments.next_page(address)
    }
}

struct Monitor<'s, R, W> {
    socket: &'s Path,
    lines: R,
    requests: W,
}

impl<R: BufRead, W: Write> Monitor<'_, R, W> {
    /// Where the memory of the guest is in that of qemu, and the registers of its processors.
    fn ask(mut self) -> Result<(Segments, Vec<Registers>), DumpError> {
        if self.line()?.get("QMP").is_none() {
            return Err(self.no_monitor());
        }
        self.query(&json!({ "execute": "qmp_capabilities" }))?;
        let ranges = ranges(&self.run_command("info mtree -f")?);
        if ranges.len() > MOST_RANGES {
            return Err(self.no_monitor());
        }
        let mut segments = Vec::new();
        for (start, length) in ranges {
            let answer = self.run_command(&format!("gpa2hva {start:#x}"))?;
            segments.extend(host_address(&answer).map(|offset| Segment { start, length, offset }));
        }
        let (segments, _) = Segments::of(segments);
        if segments.is_empty() {
            return Err(DumpError::NoDump(self.socket.into(), NoDump::NoGuestMemory));
        }
        let registers = registers(&self.run_command("info registers -a")?);
        Ok((segments, registers))
    }

    fn no_monitor(&self) -> DumpError {
        DumpError::NoDump(self.socket.into(), NoDump::NoMonitor)
    }

    fn line(&mut self) -> Result<Value, DumpError> {
        let mut line = String::new();
        let read = (&mut self.lines).take(LONGEST_LINE).read_line(&mut line).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => DumpError::NotReadable(self.socket.into(), NotReadable::MonitorBusy),
            io::ErrorKind::InvalidData => self.no_monitor(),
            _ => io_error(self.socket)(error),
        })?;
        let parsed = serde_json::from_str(&line).ok().filter(|_| read > 0);
        parsed.ok_or_else(|| self.no_monitor())
    }

    fn query(&mut self, request: &Value) -> Result<Value, DumpError> {
        writeln!(self.requests, "{request}").map_err(io_error(self.socket))?;
        for _ in 0..MOST_EVENTS {
            let mut answer = self.line()?;
            if let Some(error) = answer.get("error") {
                return Err(DumpError::NotReadable(self.socket.into(), NotReadable::MonitorRefuses(error["desc"].to_string())));
            }
            // Events come at any time.
            if let Some(found) = answer.get_mut("return") {
                return Ok(found.take());
            }
        }
        Err(self.no_monitor())
    }

    /// Run a command of the human monitor, and return its text.
    fn run_command(&mut self, command: &str) -> Result<String, DumpError> {
        let answer = self.query(&json!({
            "execute": "human-monitor-command", "arguments": { "command-line": command },
        }))?;
        Ok(answer.as_str().unwrap_or_default().into())
    }
}

/// Any bytes as the answers of a monitor: its memory, or why there is none.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn ask(answers: &[u8]) -> Result<usize, DumpError> {
    let monitor = Monitor { socket: Path::new("monitor"), lines: answers, requests: io::sink() };
    monitor.ask().map(|(_, registers)| registers.len())
}

/// Start and length of memory, from `info mtree -f`: the ranges of RAM in the view of all memory,
/// including write-protected ones.
fn ranges(tree: &str) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut is_wanted = false;
    for line in tree.lines() {
        if line.starts_with("FlatView") {
            is_wanted = false;
        }
        is_wanted |= line.trim_start().starts_with("AS \"memory\"");
        let is_memory = line.contains(", ram): ") || line.contains(", rom): ");
        let range = line.trim_start().split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).ok();
        let ends = range.and_then(|(start, end)| Some((number(start)?, number(end)?)));
        if let Some((start, end)) = ends.filter(|(start, end)| is_wanted && is_memory && start <= end) {
            found.push((start, (end - start).saturating_add(1)));
        }
    }
    found
}

/// The address in `Host virtual address for 0x0 (pc.ram) is 0x7f2a14000000`.
fn host_address(answer: &str) -> Option<u64> {
    u64::from_str_radix(answer.trim().rsplit_once(" is 0x")?.1, 16).ok()
}

/// The registers of each processor, from `info registers -a`.
fn registers(text: &str) -> Vec<Registers> {
    let mut found = Vec::<Registers>::new();
    for line in text.lines() {
        if line.trim_start().starts_with("CPU#") {
            found.push(Registers::default());
        }
        let Some(last) = found.last_mut() else { continue };
        // A name of two letters is followed by a blank: `R8 =0000000000000000`.
        let line = line.replace(" =", "=");
        for (name, value) in line.split_whitespace().filter_map(|word| word.split_once('=')) {
            let place = REGISTERS.iter().find(|(known, _)| *known == name).map(|(_, place)| *place);
            let place = place.or((name == "CS").then_some(CODE_SEGMENT));
            let register = place.and_then(|place| last.all.get_mut(place));
            if let (Some(register), Ok(value)) = (register, u64::from_str_radix(value, 16)) {
                *register = value;
            }
        }
        (last.ip, last.sp, last.bp) = (last.all[16], last.all[19], last.all[4]);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_the_view_of_all_memory_names() {
        let tree = "FlatView #0\n AS \"I/O\", root: io\n Root memory region: io\n  0000000000000000-0000000000000007 (prio 0, i/o): dma\n\n\
             FlatView #1\n AS \"memory\", root: system\n AS \"cpu-memory-0\", root: system\n Root memory region: system\n\
             \x20 0000000000000000-000000000009ffff (prio 0, ram): pc.ram\n  00000000000a0000-00000000000bffff (prio 1, i/o): vga\n\
             \x20 00000000000c0000-00000000000cffff (prio 1, rom): pc.ram @00000000000c0000\n\
             \x20 0000000100000000-000000013fffffff (prio 0, ram): pc.ram @00000000c0000000 KVM\n\nFlatView #2\n\
             \x20 0000000000000000-000000000000ffff (prio 0, ram): other\n";
        assert_eq!(ranges(tree), [(0, 0xa0000), (0xc0000, 0x10000), (1 << 32, 1 << 30)]);
    }

    fn session(ranges: usize, events: usize) -> String {
        let memory = "  0000000000000000-000000000009ffff (prio 0, ram): pc.ram\n".repeat(ranges);
        let tree = format!("FlatView #0\n AS \"memory\", root: system\n{memory}");
        let mut lines = vec![json!({ "QMP": {} }), json!({ "return": {} }), json!({ "return": tree })];
        lines.extend((0..events).map(|_| json!({ "event": "RESET" })));
        lines.extend((0..ranges).map(|_| json!({ "return": "it is 0x7000" })));
        lines.push(json!({ "return": "CPU#0\nRIP=1" }));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn what_is_no_monitor_is_an_error() {
        assert_eq!(ask(session(1, 100).as_bytes()).ok(), Some(1));
        for (ranges, events) in [(0, 0), (MOST_RANGES + 1, 0), (1, MOST_EVENTS)] {
            assert!(ask(session(ranges, events).as_bytes()).is_err());
        }
        let cut = session(1, 0);
        for other in [&b""[..], b"{}", b"SSH-2.0", &cut.as_bytes()[..cut.len() - 20], &[b' '; 1000], &[0xff; 1000]] {
            assert!(matches!(ask(other), Err(DumpError::NoDump(_, NoDump::NoMonitor))));
        }
    }

    #[test]
    fn an_address_is_the_last_word() {
        assert_eq!(host_address("Host virtual address for 0xc0000 (pc.ram) is 0x7f2a140c0000\r\n"), Some(0x7f2a_140c_0000));
        assert_eq!(host_address("No memory is mapped at address 0xa0000"), None);
    }

    #[test]
    fn registers_of_each_processor_are_read() {
        let text = "\r\nCPU#0\r\nRAX=0000000000000001 RBX=0000000000000002 RCX=0000000000000003 RDX=0000000000000004\r\n\
            RSI=0000000000000005 RDI=0000000000000006 RBP=0000000000000007 RSP=ffffc90000003f58\r\n\
            R8 =0000000000000008 R9 =0000000000000009 R10=000000000000000a R11=000000000000000b\r\n\
            RIP=ffffffff81c0d3ab RFL=00000246 [---Z-P-] CPL=0 II=0 A20=1 SMM=0 HLT=1\r\nCS =0010 0000000000000000 ffffffff 00af9b00\r\n\
            CPU#1\r\nRIP=ffffffff81000000 RFL=00000002\r\n";
        let found = registers(text);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].ip, found[0].sp, found[0].bp), (0xffff_ffff_81c0_d3ab, 0xffff_c900_0000_3f58, 7));
        assert_eq!((found[0].all[9], found[0].all[CODE_SEGMENT], found[0].all[18]), (8, 0x10, 0x246));
        assert_eq!(found[1].ip, 0xffff_ffff_8100_0000);
    }
}
