//! Events as bytes: the layout of `bpf/events.h`, read without trust.
//!
//! A spool may be cut, damaged or made up, so every length is checked against the bytes that are there. What is too short for what it says
//! it holds is *broken*: nothing behind it can be found either, because its length was the way there.

use sysdock_calls::Usage;

mod python;

pub(crate) use python::{PythonCode, PythonFrames};

/// Bytes before what is particular to a kind.
const HEADER: usize = 8;

/// The kinds of events.
pub(crate) mod kind {
    pub(crate) const CALL: u8 = 1;
    pub(crate) const PATH: u8 = 2;
    pub(crate) const FORK: u8 = 3;
    pub(crate) const EXEC: u8 = 4;
    pub(crate) const EXIT: u8 = 5;
    pub(crate) const SIGNAL: u8 = 6;
    pub(crate) const TASK: u8 = 7;
    pub(crate) const FAULT: u8 = 8;
    pub(crate) const PAGE_IO: u8 = 9;
    pub(crate) const AIO_SUBMIT: u8 = 20;
    pub(crate) const AIO_DONE: u8 = 21;
    pub(crate) const STACK: u8 = 16;
    pub(crate) const MAPPED: u8 = 17;
    pub(crate) const PROGRAM: u8 = 18;
    pub(crate) const PYTHON: u8 = 19;
    pub(crate) const PYTHON_CODE: u8 = 22;
}

const SECOND_FILE: u8 = 1;
const PATH: u8 = 2;
const SECOND_PATH: u8 = 4;
const MAPPING: u8 = 8;
const NO_START: u8 = 16;
const STACK: u8 = 32;
const UNFINISHED: u8 = 64;
const RING: u8 = 128;
/// Flags that announce nothing behind the fixed part.
const PLAIN: u8 = NO_START | UNFINISHED | RING;

// Of a path, 1 is `PATH_DELETED`: it is shown as it was.
const CUT: u16 = 2;
const STACK_AGAIN: u8 = 1;
const AUXILIARY: usize = 320;
const NO_DIRECTORY: u16 = 4;

/// One event, not yet looked into.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    pub(crate) kind: u8,
    flags: u8,
    bytes: &'a [u8],
}

/// The first event of `bytes`, and what follows it; `None` if its length cannot be.
#[inline]
pub(crate) fn split(bytes: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
    if length < HEADER || length % 8 != 0 {
        return None;
    }
    let (event, rest) = bytes.split_at_checked(length)?;
    Some((Raw { kind: header[6], flags: header[7], bytes: event }, rest))
}

/// Fields at fixed places. The caller has checked the length.
#[derive(Clone, Copy)]
struct Fixed<'a, const N: usize>(&'a [u8; N]);

impl<const N: usize> Fixed<'_, N> {
    #[inline]
    fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().expect("two bytes"))
    }

    #[inline]
    fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    #[inline]
    fn i32(self, at: usize) -> i32 {
        self.u32(at).cast_signed()
    }

    #[inline]
    fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    #[inline]
    fn i64(self, at: usize) -> i64 {
        self.u64(at).cast_signed()
    }
}

impl<'a> Raw<'a> {
    #[inline]
    fn fixed<const N: usize>(&self) -> Option<(Fixed<'a, N>, &'a [u8])> {
        let (fixed, rest) = self.bytes.split_first_chunk()?;
        Some((Fixed(fixed), rest))
    }

    /// When it happened, `CLOCK_MONOTONIC` [ns]; of a call or fault its end. `None`: it has no time (paths, unknown kinds), or is broken.
    #[inline]
    pub(crate) fn at_ns(&self) -> Option<u64> {
        if self.kind == kind::CALL {
            let (fixed, _) = self.fixed::<24>()?;
            return Some(fixed.u64(8).saturating_add(fixed.u64(16) >> 16));
        }
        if self.kind == kind::FAULT {
            let (fixed, _) = self.fixed::<24>()?;
            return Some(fixed.u64(8).saturating_add(fixed.u64(16)));
        }
        let timed = matches!(
            self.kind,
            kind::FORK
                | kind::EXEC
                | kind::EXIT
                | kind::SIGNAL
                | kind::TASK
                | kind::PAGE_IO
                | kind::STACK
                | kind::PYTHON
                | kind::AIO_SUBMIT
                | kind::AIO_DONE
        );
        self.fixed::<16>().filter(|_| timed).map(|(fixed, _)| fixed.u64(8))
    }

    /// Whether it holds all that its kind and flags announce. Events of unknown kinds are whole.
    #[inline]
    pub(crate) fn is_whole(&self) -> bool {
        match self.kind {
            kind::CALL if self.flags & !PLAIN == 0 => self.bytes.len() >= 64,
            kind::CALL => self.call().is_some(),
            kind::PATH => self.path().is_some(),
            kind::FORK => self.fork().is_some(),
            kind::EXEC => self.exec().is_some(),
            kind::EXIT => self.exit().is_some(),
            kind::SIGNAL => self.signal().is_some(),
            kind::TASK => self.task().is_some(),
            kind::FAULT => self.fault().is_some(),
            kind::PAGE_IO => self.page_io().is_some(),
            kind::AIO_SUBMIT => self.aio_submit().is_some(),
            kind::AIO_DONE => self.aio_done().is_some(),
            kind::STACK => self.stack().is_some(),
            kind::MAPPED => self.mapped().is_some(),
            kind::PROGRAM => self.program().is_some(),
            kind::PYTHON => self.python().is_some(),
            kind::PYTHON_CODE => self.python_code().is_some(),
            _ => true,
        }
    }

    /// As a call.
    #[inline]
    pub(crate) fn call(&self) -> Option<Call<'a>> {
        let (fixed, mut rest) = self.fixed::<64>()?;
        let mut call = Call {
            start_ns: fixed.u64(8),
            duration_ns: fixed.u64(16) >> 16,
            number: fixed.u16(16),
            tid: fixed.u32(24),
            fd: fixed.i32(28),
            result: fixed.i64(32),
            file: fixed.u64(40),
            offset: fixed.i64(48),
            extra: fixed.u64(56),
            no_start: self.flags & NO_START != 0,
            unfinished: self.flags & UNFINISHED != 0,
            ring: self.flags & RING != 0,
            ..Call::default()
        };
        if self.flags & !PLAIN != 0 {
            call.fill(self.flags, &mut rest)?;
        }
        Some(call)
    }

    /// As the place of a file.
    pub(crate) fn path(&self) -> Option<Path<'a>> {
        let (fixed, rest) = self.fixed::<48>()?;
        let flags = fixed.u16(30);
        Some(Path {
            id: fixed.u64(8),
            inode: fixed.u64(16),
            device: fixed.u32(24),
            size: fixed.u64(40),
            mode: fixed.u16(28),
            magic: fixed.u32(32),
            cut: flags & CUT != 0,
            no_directory: flags & NO_DIRECTORY != 0,
            names: rest.get(..usize::from(fixed.u16(36)))?,
        })
    }

    /// As a birth.
    pub(crate) fn fork(&self) -> Option<Fork<'a>> {
        let (fixed, _) = self.fixed::<48>()?;
        Some(Fork {
            parent_tid: fixed.u32(16),
            parent_pid: fixed.u32(20),
            tid: fixed.u32(24),
            pid: fixed.u32(28),
            comm: until_nul(&self.bytes[32..48]),
        })
    }

    /// As the start of a program.
    pub(crate) fn exec(&self) -> Option<Exec<'a>> {
        let (fixed, rest) = self.fixed::<48>()?;
        let (filename, rest) = rest.split_at_checked(usize::from(fixed.u16(28)))?;
        Some(Exec {
            tid: fixed.u32(16),
            pid: fixed.u32(20),
            old_tid: fixed.u32(24),
            comm: until_nul(&self.bytes[32..48]),
            filename: until_nul(filename),
            arguments: rest.get(..usize::from(fixed.u16(30)))?,
        })
    }

    /// As the end of a thread.
    pub(crate) fn exit(&self) -> Option<Exit> {
        let (fixed, _) = self.fixed::<128>()?;
        let counted = |at| fixed.u64(at).min(i64::MAX.cast_unsigned()).cast_signed();
        let (user_ns, system_ns) = shares(fixed.u64(32), fixed.u64(40), fixed.u64(120));
        Some(Exit {
            tid: fixed.u32(16),
            pid: fixed.u32(20),
            status: fixed.u32(24),
            last: fixed.u32(28) != 0,
            usage: Usage {
                user_ns,
                system_ns,
                minor_faults: counted(48),
                major_faults: counted(56),
                read_chars: counted(64),
                write_chars: counted(72),
                device_read_bytes: counted(96),
                device_write_bytes: counted(104),
            },
        })
    }

    /// As a signal.
    pub(crate) fn signal(&self) -> Option<Signal> {
        let (fixed, _) = self.fixed::<32>()?;
        let (tid, sender_pid) = (fixed.u32(16), fixed.u32(28));
        Some(Signal { tid, signal: fixed.i32(20), code: fixed.i32(24), sender_pid })
    }

    /// As a page fault.
    pub(crate) fn fault(&self) -> Option<Fault> {
        let (fixed, _) = self.fixed::<72>()?;
        Some(Fault {
            start_ns: fixed.u64(8),
            duration_ns: fixed.u64(16),
            tid: fixed.u32(24),
            around_pages: fixed.u32(28),
            address: fixed.u64(32),
            file: fixed.u64(40),
            offset: fixed.u64(48),
            around_page: fixed.u64(56),
            brought_in_pages: fixed.u32(64),
            flags: self.flags,
        })
    }

    /// As a request to a block device.
    pub(crate) fn page_io(&self) -> Option<PageIo> {
        let (fixed, _) = self.fixed::<56>()?;
        Some(PageIo {
            file: fixed.u64(16),
            inode: fixed.u64(24),
            offset: fixed.i64(32),
            device: fixed.u32(40),
            bytes: fixed.u32(44),
            tid: fixed.u32(48),
            flags: self.flags,
        })
    }

    /// As the beginning of an operation of libaio.
    pub(crate) fn aio_submit(&self) -> Option<AioSubmit> {
        let (fixed, _) = self.fixed::<80>()?;
        Some(AioSubmit {
            start_ns: fixed.u64(16),
            context: fixed.u64(24),
            block: fixed.u64(32),
            file: fixed.u64(40),
            offset: fixed.i64(48),
            bytes: fixed.i64(56),
            tid: fixed.u32(64),
            fd: fixed.i32(68),
            opcode: fixed.u32(72),
        })
    }

    /// As its end.
    pub(crate) fn aio_done(&self) -> Option<AioDone> {
        let (fixed, _) = self.fixed::<48>()?;
        Some(AioDone { context: fixed.u64(16), block: fixed.u64(24), result: fixed.i64(32), tid: fixed.u32(40) })
    }

    /// As a thread that was there before.
    pub(crate) fn task(&self) -> Option<Task<'a>> {
        let (fixed, rest) = self.fixed::<48>()?;
        Some(Task {
            tid: fixed.u32(16),
            pid: fixed.u32(20),
            parent_pid: fixed.u32(24),
            comm: until_nul(&self.bytes[32..48]),
            arguments: rest.get(..usize::from(fixed.u16(28)))?,
        })
    }

    /// As a part of a stack.
    pub(crate) fn stack(&self) -> Option<StackPart<'a>> {
        let (fixed, bytes) = self.fixed::<104>()?;
        Some(StackPart {
            id: fixed.u64(16),
            image: fixed.u64(24),
            registers: std::array::from_fn(|index| fixed.u64(32 + 8 * index)),
            tid: fixed.u32(96),
            offset: fixed.u32(100),
            again: self.flags & STACK_AGAIN != 0,
            bytes,
        })
    }

    /// As code that was mapped.
    pub(crate) fn mapped(&self) -> Option<Mapped> {
        let (fixed, _) = self.fixed::<64>()?;
        Some(Mapped {
            image: fixed.u64(8),
            parent: fixed.u64(16),
            start: fixed.u64(24),
            length: fixed.u64(32),
            offset: fixed.u64(40),
            file: fixed.u64(48),
            at_ns: fixed.u64(56),
        })
    }

    /// As a program that the kernel mapped.
    pub(crate) fn program(&self) -> Option<ProgramMapped> {
        let (fixed, rest) = self.fixed::<48>()?;
        let (auxiliary, _) = rest.split_first_chunk::<AUXILIARY>()?;
        let words: Vec<u64> =
            auxiliary.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
        let value = |key: u64| words.chunks_exact(2).find(|pair| pair[0] == key).map_or(0, |pair| pair[1]);
        Some(ProgramMapped {
            image: fixed.u64(8),
            at_ns: fixed.u64(16),
            file: fixed.u64(24),
            code_start: fixed.u64(32),
            code_bytes: fixed.u64(40),
            loader: value(libc::AT_BASE),
            entry: value(libc::AT_ENTRY),
        })
    }
}

/// A part of a stack. The first part stands at offset 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackPart<'a> {
    pub(crate) id: u64,
    pub(crate) image: u64,
    /// ip, sp, bp, bx, r12, r13, r14, r15.
    pub(crate) registers: [u64; 8],
    pub(crate) tid: u32,
    pub(crate) offset: u32,
    /// The id was told before.
    pub(crate) again: bool,
    pub(crate) bytes: &'a [u8],
}

/// Code of a file that was mapped: `image` is `parent` with it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    pub(crate) image: u64,
    pub(crate) parent: u64,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) file: u64,
    pub(crate) at_ns: u64,
}

/// A program that the kernel mapped, and its loader: nothing else is in `image`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramMapped {
    pub(crate) image: u64,
    pub(crate) at_ns: u64,
    pub(crate) file: u64,
    pub(crate) code_start: u64,
    pub(crate) code_bytes: u64,
    /// Where the loader lies; 0: there is none.
    pub(crate) loader: u64,
    /// Where the program begins to run.
    pub(crate) entry: u64,
}

/// A system call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call<'a> {
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) number: u16,
    pub(crate) tid: u32,
    pub(crate) fd: i32,
    pub(crate) result: i64,
    pub(crate) file: u64,
    pub(crate) offset: i64,
    pub(crate) extra: u64,
    pub(crate) no_start: bool,
    pub(crate) unfinished: bool,
    /// Submitted to an io_uring.
    pub(crate) ring: bool,
    /// Id of the second file, and its offset; of a pair the second descriptor.
    pub(crate) second: Option<(u64, i64)>,
    pub(crate) path: Option<PathArgument<'a>>,
    pub(crate) second_path: Option<PathArgument<'a>>,
    pub(crate) mapping: Option<Mapping>,
    /// Id of the stack; 0: none.
    pub(crate) stack: u64,
}

impl<'a> Call<'a> {
    /// What stands behind the fixed part.
    fn fill(&mut self, flags: u8, rest: &mut &'a [u8]) -> Option<()> {
        if flags & SECOND_FILE != 0 {
            let fixed: Fixed<16> = take(rest)?;
            self.second = Some((fixed.u64(0), fixed.i64(8)));
        }
        if flags & MAPPING != 0 {
            let fixed: Fixed<24> = take(rest)?;
            let (protection, flags) = (fixed.u32(16), fixed.u32(20));
            self.mapping = Some(Mapping { length: fixed.u64(0), offset: fixed.u64(8), protection, flags });
        }
        if flags & STACK != 0 {
            self.stack = take::<8>(rest)?.u64(0);
        }
        if flags & PATH != 0 {
            self.path = Some(PathArgument::take(rest)?);
        }
        if flags & SECOND_PATH != 0 {
            self.second_path = Some(PathArgument::take(rest)?);
        }
        Some(())
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<Fixed<'a, N>> {
    let (fixed, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(Fixed(fixed))
}

/// A path as the program gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathArgument<'a> {
    /// Id of the directory that a relative path starts from; 0: not known.
    pub(crate) base: u64,
    /// `None`: it could not be read.
    pub(crate) text: Option<&'a [u8]>,
}

impl<'a> PathArgument<'a> {
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let fixed: Fixed<16> = take(rest)?;
        let length = usize::from(fixed.u16(8));
        let (block, behind) = rest.split_at_checked(length.next_multiple_of(8))?;
        *rest = behind;
        Some(PathArgument { base: fixed.u64(0), text: (fixed.u16(10) & 1 == 0).then_some(&block[..length]) })
    }
}

/// What mmap was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    pub(crate) length: u64,
    pub(crate) offset: u64,
    pub(crate) protection: u32,
    pub(crate) flags: u32,
}

/// Where a file lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path<'a> {
    pub(crate) id: u64,
    pub(crate) inode: u64,
    pub(crate) device: u32,
    /// Of the file, when this was told [B].
    pub(crate) size: u64,
    pub(crate) mode: u16,
    pub(crate) magic: u32,
    pub(crate) cut: bool,
    pub(crate) no_directory: bool,
    names: &'a [u8],
}

impl<'a> Path<'a> {
    /// Its names, from the leaf to the root.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.names;
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first()?;
            let (name, behind) = behind.split_at_checked(usize::from(*length))?;
            rest = behind;
            Some(name)
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Fork<'a> {
    pub(crate) parent_tid: u32,
    pub(crate) parent_pid: u32,
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) comm: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Exec<'a> {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) old_tid: u32,
    pub(crate) comm: &'a [u8],
    pub(crate) filename: &'a [u8],
    pub(crate) arguments: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Exit {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) status: u32,
    /// No thread of the process is left.
    pub(crate) last: bool,
    pub(crate) usage: Usage,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Signal {
    pub(crate) tid: u32,
    pub(crate) signal: i32,
    pub(crate) code: i32,
    pub(crate) sender_pid: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'a> {
    pub(crate) tid: u32,
    pub(crate) pid: u32,
    pub(crate) parent_pid: u32,
    pub(crate) comm: &'a [u8],
    pub(crate) arguments: &'a [u8],
}

/// A page fault on a mapped file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) tid: u32,
    /// Pages that were offered to be mapped at once, from `around_page` on; 0: not known.
    pub(crate) around_pages: u32,
    pub(crate) address: u64,
    pub(crate) file: u64,
    pub(crate) offset: u64,
    pub(crate) around_page: u64,
    brought_in_pages: u32,
    flags: u8,
}

impl Fault {
    /// It had to wait for the page.
    pub(crate) fn is_major(&self) -> bool {
        self.flags & 1 != 0
    }

    pub(crate) fn is_write(&self) -> bool {
        self.flags & 2 != 0
    }

    /// Of an instruction.
    pub(crate) fn is_fetch(&self) -> bool {
        self.flags & 4 != 0
    }

    /// What is written reaches the file.
    pub(crate) fn is_shared(&self) -> bool {
        self.flags & 8 != 0
    }

    /// The page was there already, but not for what was tried.
    pub(crate) fn was_mapped(&self) -> bool {
        self.flags & 16 != 0
    }

    /// Pages that it mapped, this one and neighbours. `None`: not known.
    pub(crate) fn brought_in_pages(&self) -> Option<u32> {
        (self.flags & 64 != 0).then_some(self.brought_in_pages)
    }

    /// The kernel touched the page, for a system call.
    pub(crate) fn is_in_call(&self) -> bool {
        self.flags & 32 != 0
    }
}

/// A request to a block device, for pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageIo {
    /// Id of the file, 0 if nobody had named it yet; then its inode does.
    pub(crate) file: u64,
    pub(crate) inode: u64,
    /// Of the inode.
    pub(crate) device: u32,
    /// In the file; -1: the pages are of none, or not in one piece.
    pub(crate) offset: i64,
    pub(crate) bytes: u32,
    /// 0: no thread that is recorded.
    pub(crate) tid: u32,
    flags: u8,
}

impl PageIo {
    pub(crate) fn is_write(&self) -> bool {
        self.flags & 1 != 0
    }

    /// By read-ahead.
    pub(crate) fn is_ahead(&self) -> bool {
        self.flags & 2 != 0
    }

    /// The pages are of a block device, not of a file.
    pub(crate) fn is_device(&self) -> bool {
        self.flags & 4 != 0
    }

    /// They are in no page cache.
    pub(crate) fn is_memory(&self) -> bool {
        self.flags & 8 != 0
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AioSubmit {
    pub(crate) start_ns: u64,
    pub(crate) context: u64,
    pub(crate) block: u64,
    pub(crate) file: u64,
    pub(crate) offset: i64,
    pub(crate) bytes: i64,
    pub(crate) tid: u32,
    pub(crate) fd: i32,
    pub(crate) opcode: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AioDone {
    pub(crate) context: u64,
    pub(crate) block: u64,
    pub(crate) result: i64,
    pub(crate) tid: u32,
}

/// CPU time in programs and in the kernel [ns]: what was measured, divided as it was sampled. The kernel does the same (`cputime_adjust`).
fn shares(user: u64, system: u64, measured_ns: u64) -> (i64, i64) {
    let measured_ns = measured_ns.min(i64::MAX.cast_unsigned());
    let sampled = u128::from(user) + u128::from(system);
    let system_ns = (u128::from(measured_ns) * u128::from(system)).checked_div(sampled).unwrap_or(0) as u64;
    ((measured_ns - system_ns).cast_signed(), system_ns.cast_signed())
}

fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}
