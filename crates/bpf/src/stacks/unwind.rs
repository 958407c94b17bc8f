//! From the copy of a stack to its frames, by the tables that compilers leave in a binary for exceptions (`.eh_frame`): programs need no
//! frame pointers for it.

use std::{rc::Rc, sync::Arc};

use framehop::{
    Error, ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder,
    x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64},
};
use rustc_hash::FxHashMap;

use crate::{
    conversion::places::Places,
    stacks::{
        elf::Binary,
        images::{Area, Objects},
    },
};

/// Frames of a stack that are kept, the innermost ones.
const MOST_FRAMES: usize = 256;
/// Images that are held at a time.
const HELD_IMAGES: usize = 64;

/// Why a stack ends where it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum End {
    /// Where the thread began.
    Whole,
    /// What stands further up was not copied.
    CopyEnded,
    /// The code of the last frame has no table of frames, or its file is not there.
    NoUnwindInformation,
    /// The last address belongs to no file that was mapped.
    NoFile,
    /// There are more frames than are kept.
    TooDeep,
}

impl End {
    /// As it is in the table; `None`: it needs no row.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            End::Whole => None,
            End::CopyEnded => Some("[stack copy ended]"),
            End::NoUnwindInformation => Some("[no unwind information]"),
            End::NoFile => Some("[no file]"),
            End::TooDeep => Some("[more frames]"),
        }
    }
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Index in `Objects::all`.
    pub(crate) object: u32,
    /// The address that the file states; where the file is not there any more, the offset in it.
    pub(crate) address: u64,
    /// It is the next instruction: a thread was interrupted there. Else it is where a call returns to: the call itself stands before it.
    pub(crate) interrupted: bool,
}

/// A copied stack.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) image: u64,
    /// ip, sp, bp, bx, r12, r13, r14, r15.
    pub(crate) registers: [u64; 8],
    /// The first is the next instruction; else the one before it entered the kernel.
    pub(crate) interrupted: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Copy {
    fn read(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.registers[1])?).ok()?;
        let word = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(word.try_into().expect("eight bytes")))
    }

    fn registers(&self) -> UnwindRegsX86_64 {
        let [ip, sp, bp, bx, r12, r13, r14, r15] = self.registers;
        let mut registers = UnwindRegsX86_64::new(ip, sp, bp);
        for (register, value) in [(Reg::RBX, bx), (Reg::R12, r12), (Reg::R13, r13), (Reg::R14, r14), (Reg::R15, r15)] {
            registers.set(register, value);
        }
        registers
    }
}

/// An image made ready.
struct Image {
    areas: Vec<Area>,
    unwinder: UnwinderX86_64<Arc<[u8]>>,
}

/// Finds frames.
#[derive(Default)]
pub(crate) struct Frames {
    pub(crate) objects: Objects,
    held: FxHashMap<u64, Rc<Image>>,
    cache: CacheX86_64,
}

impl Frames {
    /// The frames of a stack of a process, the innermost first, and why there are no more.
    pub(crate) fn of(
        &mut self,
        copy: &Copy,
        pid: Option<u32>,
        places: &Places,
        epoch_ns: &impl Fn(u64) -> i64,
    ) -> (Vec<Frame>, End) {
        let image = self.image(copy.image, places, epoch_ns);
        let mut read = |address| copy.read(address).ok_or(());
        let mut registers = copy.registers();
        let mut address = FrameAddress::from_instruction_pointer(copy.registers[0]);
        let mut frames = Vec::new();
        loop {
            let is_entry_to_kernel = frames.is_empty() && !copy.interrupted;
            let found = frame(&image.areas, address, is_entry_to_kernel);
            let Some(frame) = found.or_else(|| self.jitted(pid?, address)) else { return (frames, End::NoFile) };
            if frames.len() >= MOST_FRAMES {
                return (frames, End::TooDeep);
            }
            frames.push(frame);
            let object = &self.objects.all[frame.object as usize];
            // Those who write of such functions for profilers keep frame pointers in them.
            if object.jitted.is_some() {
                address = match caller_by_frame_pointer(copy, &mut registers) {
                    Ok(Some(caller)) => FrameAddress::from_return_address(caller).unwrap_or(address),
                    Ok(None) => return (frames, End::Whole),
                    Err(end) => return (frames, end),
                };
                continue;
            }
            let Some(binary) = object.binary.as_ref() else { return (frames, End::NoUnwindInformation) };
            if binary.trampolines.contains(&frame.address) {
                let Some(interrupted) = interrupted(copy, &mut registers) else { return (frames, End::CopyEnded) };
                address = FrameAddress::from_instruction_pointer(interrupted);
                continue;
            }
            // Without its tables, what is found above would be a guess by frame pointers.
            if binary.eh_frame.is_none() {
                if !binary.is_go {
                    return (frames, End::NoUnwindInformation);
                }
                address = match caller_in_go(copy, &mut registers, frames.len() == 1) {
                    Ok(Some(caller)) => FrameAddress::from_return_address(caller).unwrap_or(address),
                    Ok(None) => return (frames, End::Whole),
                    Err(end) => return (frames, end),
                };
                continue;
            }
            address = match image.unwinder.unwind_frame(address, &mut registers, &mut self.cache, &mut read) {
                Ok(Some(caller)) => FrameAddress::from_return_address(caller).unwrap_or(address),
                Ok(None) => return (frames, End::Whole),
                Err(_) if is_entry(binary, frame.address) => return (frames, End::Whole),
                Err(Error::CouldNotReadStack(at)) if copy.ends_before(at) => return (frames, End::CopyEnded),
                Err(_) => return (frames, End::NoUnwindInformation),
            };
        }
    }

    /// The frame of a function that the process made.
    fn jitted(&mut self, pid: u32, address: FrameAddress) -> Option<Frame> {
        let object = self.objects.jitted(pid, address.address_for_lookup())?;
        let interrupted = matches!(address, FrameAddress::InstructionPointer(_));
        Some(Frame { object, address: address.address(), interrupted })
    }

    fn image(&mut self, image: u64, places: &Places, epoch_ns: &impl Fn(u64) -> i64) -> Rc<Image> {
        if let Some(held) = self.held.get(&image) {
            return Rc::clone(held);
        }
        let areas = self.objects.areas(image, places, epoch_ns);
        let mut unwinder = UnwinderX86_64::new();
        for area in &areas {
            if let Some(binary) = &self.objects.all[area.object as usize].binary {
                unwinder.add_module(Module::new(String::new(), area.range.clone(), area.bias, sections(binary)));
            }
        }
        if self.held.len() >= HELD_IMAGES {
            self.held.clear();
        }
        let made = Rc::new(Image { areas, unwinder });
        self.held.insert(image, Rc::clone(&made));
        made
    }
}

impl Copy {
    /// Whether this address lies after what was copied.
    fn ends_before(&self, address: u64) -> bool {
        address >= self.registers[1].saturating_add(self.bytes.len() as u64).saturating_sub(7)
    }
}

/// Whether this is where a program or its loader begins, which has a table of frames only in newer ones.
fn is_entry(binary: &Binary, address: u64) -> bool {
    /// More than `_start` of any C library has.
    const LONGEST: u64 = 64;
    (binary.entry..binary.entry.saturating_add(LONGEST)).contains(&address)
}

/// Where a signal interrupted a thread: the handler has returned, so that `struct ucontext` of the kernel (asm/ucontext.h, asm/sigcontext.h)
/// stands on top of the stack. The registers become those of then.
fn interrupted(copy: &Copy, registers: &mut UnwindRegsX86_64) -> Option<u64> {
    const PLACES: [(Reg, u64); 7] =
        [(Reg::R12, 72), (Reg::R13, 80), (Reg::R14, 88), (Reg::R15, 96), (Reg::RBP, 120), (Reg::RBX, 128), (Reg::RSP, 160)];
    let context = registers.sp();
    for (register, place) in PLACES {
        registers.set(register, copy.read(context.checked_add(place)?)?);
    }
    let address = copy.read(context.checked_add(168)?)?;
    registers.set_ip(address);
    Some(address)
}

/// The address that a function of Go returns to, by frame pointers; `None`: a goroutine begins here.
///
/// What enters the kernel is a function without a frame: its caller stands on top of the stack.
fn caller_in_go(copy: &Copy, registers: &mut UnwindRegsX86_64, is_first: bool) -> Result<Option<u64>, End> {
    if !is_first {
        return caller_by_frame_pointer(copy, registers);
    }
    let sp = registers.sp();
    registers.set_sp(sp.saturating_add(8));
    copy.read(sp).ok_or(End::CopyEnded).map(Some)
}

/// The address that a function with a frame pointer returns to; `None`: nothing called it.
fn caller_by_frame_pointer(copy: &Copy, registers: &mut UnwindRegsX86_64) -> Result<Option<u64>, End> {
    let read = |address: u64| copy.read(address).ok_or(End::CopyEnded);
    let (sp, bp) = (registers.sp(), registers.bp());
    if bp == 0 {
        return Ok(None);
    }
    // Frames follow one another towards the bottom of the stack; where they do not, it is no frame pointer.
    if bp < sp {
        return Err(End::NoUnwindInformation);
    }
    let (caller_bp, caller) = (read(bp)?, read(bp.saturating_add(8))?);
    registers.set_bp(caller_bp);
    registers.set_sp(bp.saturating_add(16));
    Ok(Some(caller))
}

fn frame(areas: &[Area], address: FrameAddress, is_entry_to_kernel: bool) -> Option<Frame> {
    let lookup = address.address_for_lookup();
    let after = areas.partition_point(|area| area.range.start <= lookup);
    let area = areas[..after].last().filter(|area| lookup < area.range.end)?;
    let interrupted = matches!(address, FrameAddress::InstructionPointer(_)) && !is_entry_to_kernel;
    Some(Frame { object: area.object, address: address.address().wrapping_sub(area.bias), interrupted })
}

fn sections(binary: &Binary) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
    let part = |section: &Option<(std::ops::Range<u64>, Arc<[u8]>)>| match section {
        Some((range, data)) => (Some(range.clone()), Some(Arc::clone(data))),
        None => (None, None),
    };
    let (eh_frame_svma, eh_frame) = part(&binary.eh_frame);
    let (eh_frame_hdr_svma, eh_frame_hdr) = part(&binary.eh_frame_hdr);
    ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: binary.text.clone(),
        got_svma: binary.got.clone(),
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        ..ExplicitModuleSectionInfo::default()
    }
}
