//! Finds the frames in the copy of a stack, by the tables that compilers generate for exceptions
//! (`.eh_frame`), so programs need no frame pointers.

use std::{rc::Rc, sync::Arc};

use framehop::{
    Error, ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder,
    x86_64::{CacheX86_64, Reg, UnwindRegsX86_64, UnwinderX86_64},
};
use rustc_hash::FxHashMap;
use sysdock_symbols::elf::Binary;

use crate::{
    conversion::places::Places,
    stacks::images::{Area, Objects},
};

/// Number of frames of a stack that are kept, the innermost ones.
const MOST_FRAMES: usize = 256;
/// Number of images that are cached.
const HELD_IMAGES: usize = 64;

/// Why a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum End {
    /// The thread began here.
    Whole,
    /// The part further up was not copied.
    CopyEnded,
    /// The code of the last frame has no table of frames, or its file does not exist.
    NoUnwindInformation,
    /// The last address belongs to no mapped file.
    NoFile,
    /// There are more frames than are kept.
    TooDeep,
}

impl End {
    /// The text in the table; `None`: no row is needed.
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

/// A location in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Frame {
    /// Index in `Objects::all`.
    pub(crate) object: u32,
    /// The address that the file states; if the file does not exist any more, the offset in it.
    pub(crate) address: u64,
    /// Whether the address is the next instruction of an interrupted thread. Otherwise it is a
    /// return address, and the call precedes it.
    pub(crate) interrupted: bool,
}

/// A copied stack.
#[derive(Debug)]
pub(crate) struct Copy {
    pub(crate) image: u64,
    /// ip, sp, bp, bx, r12, r13, r14, r15.
    pub(crate) registers: [u64; 8],
    /// Whether ip is the next instruction; otherwise the instruction before it entered the kernel.
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

/// The areas of an image, prepared for unwinding.
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
            // Runtimes that list such functions for profilers keep frame pointers in them.
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
            // Without tables, frames further up would be guesses by frame pointers.
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

    /// The frame of a generated function of the process.
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
    /// Whether an address is after the end of the copy.
    fn ends_before(&self, address: u64) -> bool {
        address >= self.registers[1].saturating_add(self.bytes.len() as u64).saturating_sub(7)
    }
}

/// Whether this is the entry of a program or its loader, which only newer ones have a table of
/// frames for.
fn is_entry(binary: &Binary, address: u64) -> bool {
    /// Longer than `_start` of any C library [B].
    const LONGEST: u64 = 64;
    (binary.entry..binary.entry.saturating_add(LONGEST)).contains(&address)
}

/// Restore the registers of a thread that a signal interrupted, and return its address. The handler
/// has returned, so `struct ucontext` of the kernel (asm/ucontext.h, asm/sigcontext.h) is at the
/// top of the stack.
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

/// The return address of a function of Go, by frame pointers; `None`: a goroutine begins here.
///
/// The function that enters the kernel has no frame: its return address is at the top of the stack.
fn caller_in_go(copy: &Copy, registers: &mut UnwindRegsX86_64, is_first: bool) -> Result<Option<u64>, End> {
    if !is_first {
        return caller_by_frame_pointer(copy, registers);
    }
    let sp = registers.sp();
    registers.set_sp(sp.saturating_add(8));
    copy.read(sp).ok_or(End::CopyEnded).map(Some)
}

/// The return address of a function with a frame pointer; `None`: nothing called it.
fn caller_by_frame_pointer(copy: &Copy, registers: &mut UnwindRegsX86_64) -> Result<Option<u64>, End> {
    let read = |address: u64| copy.read(address).ok_or(End::CopyEnded);
    let (sp, bp) = (registers.sp(), registers.bp());
    if bp == 0 {
        return Ok(None);
    }
    // Frame pointers increase towards the bottom of the stack; otherwise the register is no frame
    // pointer.
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
