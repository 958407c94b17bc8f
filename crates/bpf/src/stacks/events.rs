//! Events about stacks, and about mapped code.

use crate::{
    events::{ProgramEvent, Raw, STACK_AGAIN, STACK_INTERRUPTED, STACK_OF_SAMPLE, StackEvent},
    stacks::vdso,
};

/// What a stack belongs to. A sample may come between the parts of a call's stack of the same
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Of {
    Call,
    Sample,
}

impl Of {
    /// The owner that the flags of an event about a stack state.
    pub(crate) fn flags(flags: u32) -> Self {
        if flags & STACK_OF_SAMPLE == 0 { Of::Call } else { Of::Sample }
    }
}

/// A part of a stack. The first part has offset 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackPart<'a> {
    pub(crate) id: u64,
    pub(crate) image: u64,
    /// ip, sp, bp, bx, r12, r13, r14, r15.
    pub(crate) registers: [u64; 8],
    pub(crate) tid: u32,
    pub(crate) offset: u32,
    /// Whether the id was reported before.
    pub(crate) again: bool,
    pub(crate) of: Of,
    /// Whether ip is the next instruction, rather than the one after the instruction that entered
    /// the kernel.
    pub(crate) interrupted: bool,
    pub(crate) bytes: &'a [u8],
}

impl<'a> StackPart<'a> {
    /// `None`: the event is broken.
    pub(crate) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, bytes) = event.read::<StackEvent>()?;
        let StackEvent { id, image, ip, sp, bp, bx, r12, r13, r14, r15, tid, offset, .. } = fixed;
        let registers = [ip, sp, bp, bx, r12, r13, r14, r15];
        let (again, interrupted) = (event.flags & STACK_AGAIN != 0, event.flags & STACK_INTERRUPTED != 0);
        Some(StackPart { id, image, registers, tid, offset, again, of: Of::flags(event.flags), interrupted, bytes })
    }
}

/// A program and its loader, which the kernel mapped: `image` contains nothing else.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramMapped {
    pub(crate) image: u64,
    pub(crate) at_ns: u64,
    pub(crate) file: u64,
    pub(crate) code_start: u64,
    pub(crate) code_bytes: u64,
    /// Address of the loader; 0: there is none.
    pub(crate) loader: u64,
    /// Address of the kernel's own code (vdso); 0: there is none.
    pub(crate) vdso: u64,
    /// Address at which the program starts to run.
    pub(crate) entry: u64,
}

impl ProgramMapped {
    /// `None`: the event is broken.
    pub(crate) fn of(event: &Raw<'_>) -> Option<Self> {
        let (fixed, _) = event.read::<ProgramEvent>()?;
        let ProgramEvent { image, at_ns, file, code_start, code_bytes, auxiliary } = fixed;
        let value = |key: u64| auxiliary.chunks_exact(2).find(|pair| pair[0] == key).map_or(0, |pair| pair[1]);
        let (loader, vdso, entry) = (value(libc::AT_BASE), value(vdso::AUXILIARY), value(libc::AT_ENTRY));
        Some(ProgramMapped { image, at_ns, file, code_start, code_bytes, loader, vdso, entry })
    }
}
