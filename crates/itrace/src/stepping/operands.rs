//! The memory that an instruction will access, from its operands and the registers.

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register};
use libc::user_regs_struct;
use sysdock_itrace_file::Access;

/// Finds accesses.
pub(crate) struct Operands {
    factory: InstructionInfoFactory,
    /// Number of operands whose addresses are in vector registers (gathers and scatters), which are
    /// not read.
    pub(crate) unread: u64,
}

impl Operands {
    pub(crate) fn new() -> Operands {
        Operands { factory: InstructionInfoFactory::new(), unread: 0 }
    }

    /// Call `found` for each access, loads before stores of the same location.
    pub(crate) fn each(&mut self, instruction: &Instruction, registers: &user_regs_struct, mut found: impl FnMut(Access)) {
        // A repeated string instruction accesses nothing if its counter is 0.
        if has_repeat(instruction) && counter(instruction, registers) == 0 {
            return;
        }
        for memory in self.factory.info(instruction).used_memory() {
            let (load, store) = match memory.access() {
                OpAccess::Read | OpAccess::CondRead => (true, false),
                OpAccess::Write | OpAccess::CondWrite => (false, true),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
                OpAccess::None | OpAccess::NoMemAccess => continue,
            };
            if memory.index().is_vector_register() {
                self.unread += 1;
                continue;
            }
            let Some(address) = memory.virtual_address(0, |register, _, _| value(register, registers)) else {
                self.unread += 1;
                continue;
            };
            // One iteration of a string instruction.
            let size = if has_repeat(instruction) { instruction.memory_size() } else { memory.memory_size() };
            let size_log2 = size_log2(size.size());
            let access = Access { address, store: false, size_log2, instruction: 0 };
            if load {
                found(access);
            }
            if store {
                found(Access { store: true, ..access });
            }
        }
    }
}

/// Whether this is a string instruction with a repeat prefix.
pub(crate) fn has_repeat(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

fn counter(instruction: &Instruction, registers: &user_regs_struct) -> u64 {
    // With an address-size prefix, the counter is ECX.
    let size32 = [instruction.memory_index(), instruction.memory_base()].iter().any(|register| register.is_gpr32());
    if size32 { registers.rcx & 0xffff_ffff } else { registers.rcx }
}

/// Log2 of a size, rounded up, at most 64 bytes; a larger access counts as one of 64 (processor
/// states, whose length only the processor knows).
fn size_log2(bytes: usize) -> u8 {
    match bytes {
        0 => 6,
        _ => bytes.next_power_of_two().trailing_zeros().min(6) as u8,
    }
}

fn value(register: Register, from: &user_regs_struct) -> Option<u64> {
    Some(match register {
        Register::FS => from.fs_base,
        Register::GS => from.gs_base,
        // Flat segments.
        Register::ES | Register::CS | Register::SS | Register::DS => 0,
        _ => {
            let full = match register.full_register() {
                Register::RAX => from.rax,
                Register::RBX => from.rbx,
                Register::RCX => from.rcx,
                Register::RDX => from.rdx,
                Register::RSI => from.rsi,
                Register::RDI => from.rdi,
                Register::RBP => from.rbp,
                Register::RSP => from.rsp,
                Register::R8 => from.r8,
                Register::R9 => from.r9,
                Register::R10 => from.r10,
                Register::R11 => from.r11,
                Register::R12 => from.r12,
                Register::R13 => from.r13,
                Register::R14 => from.r14,
                Register::R15 => from.r15,
                Register::RIP => from.rip,
                _ => return None,
            };
            match register.size() {
                8 => full,
                4 => full & 0xffff_ffff,
                2 => full & 0xffff,
                // XLAT adds AL.
                1 => full & 0xff,
                _ => return None,
            }
        }
    })
}
