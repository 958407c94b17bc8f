//! Properties of a block of code that do not depend on the task that executes it.

use iced_x86::{Code as Mnemonic, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register};
use sysdock_itrace_file::Block;

use crate::stepping::has_repeat;

/// How control leaves a block that was executed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// To the next instruction.
    Next,
    /// By a jump, taken or not.
    Jump,
    /// By a call.
    Call,
    /// By a return.
    Return,
    /// Into the kernel, by a system call or `int`.
    Enter,
    /// Out of the kernel, or out of an interrupt.
    Leave,
}

/// A string instruction with a repeat prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeat {
    /// Index of the instruction in the block.
    pub(crate) instruction: u16,
    /// Number of accesses of one iteration.
    pub(crate) accesses: u32,
}

/// A block of the dictionary.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) address: u64,
    /// Address after the block.
    pub(crate) end: u64,
    /// Address of its last instruction.
    pub(crate) last: u64,
    /// Number of instructions.
    pub(crate) count: u32,
    pub(crate) exit: Exit,
    pub(crate) repeat: Option<Repeat>,
    /// Index of the instruction that loads the stack pointer of the next task, and the offset of
    /// that pointer in `task_struct` (`__switch_to_asm`).
    pub(crate) switch: Option<(u16, u64)>,
    /// Number of its instructions that begin on its first page.
    pub(crate) on_first_page: u32,
}

impl Code {
    pub(crate) fn of(block: &Block, factory: &mut InstructionInfoFactory) -> Code {
        let mut code = Code {
            address: block.address,
            end: block.address.wrapping_add(block.code.len() as u64),
            last: block.address,
            count: block.lengths.len() as u32,
            exit: Exit::Next,
            repeat: None,
            switch: None,
            on_first_page: 0,
        };
        let mut stored = false;
        for (index, instruction) in Instructions::of(block).enumerate() {
            let instruction = &instruction;
            code.last = instruction.ip();
            code.exit = exit_of(instruction);
            if has_repeat(instruction) {
                code.repeat = Some(Repeat { instruction: index as u16, accesses: accesses_of(instruction, factory) });
            }
            // mov %rsp, disp(%rdi), then mov disp(%rsi), %rsp: `__switch_to_asm`.
            let moves = instruction.mnemonic() == iced_x86::Mnemonic::Mov;
            if moves && instruction.memory_base() == Register::RDI && instruction.op1_register() == Register::RSP {
                stored = true;
            }
            if moves && stored && instruction.memory_base() == Register::RSI && instruction.op0_register() == Register::RSP {
                code.switch = Some((index as u16, instruction.memory_displacement64()));
            }
            if (instruction.ip() ^ block.address) >> 12 == 0 {
                code.on_first_page += 1;
            }
        }
        code
    }

    pub(crate) fn is_kernel(&self) -> bool {
        self.address >> 63 == 1
    }
}

/// The instructions of a block.
pub(crate) struct Instructions<'b> {
    block: &'b Block,
    index: usize,
    at: usize,
}

impl<'b> Instructions<'b> {
    pub(crate) fn of(block: &'b Block) -> Instructions<'b> {
        Instructions { block, index: 0, at: 0 }
    }
}

impl Iterator for Instructions<'_> {
    type Item = Instruction;

    fn next(&mut self) -> Option<Instruction> {
        let length = usize::from(*self.block.lengths.get(self.index)?);
        let bytes = self.block.code.get(self.at..self.at + length)?;
        let address = self.block.address.wrapping_add(self.at as u64);
        self.index += 1;
        self.at += length;
        Some(Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode())
    }
}

fn exit_of(instruction: &Instruction) -> Exit {
    match instruction.code() {
        Mnemonic::Syscall | Mnemonic::Sysenter => return Exit::Enter,
        Mnemonic::Sysretd | Mnemonic::Sysretq | Mnemonic::Sysexitd | Mnemonic::Sysexitq => return Exit::Leave,
        Mnemonic::Iretw | Mnemonic::Iretd | Mnemonic::Iretq => return Exit::Leave,
        _ => {}
    }
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::XbeginXabortXend | FlowControl::Exception => Exit::Next,
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::ConditionalBranch => Exit::Jump,
        FlowControl::Call | FlowControl::IndirectCall => Exit::Call,
        FlowControl::Return => Exit::Return,
        FlowControl::Interrupt => Exit::Enter,
    }
}

fn accesses_of(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> u32 {
    let each = |access| match access {
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => 2,
        OpAccess::None | OpAccess::NoMemAccess => 0,
        _ => 1,
    };
    factory.info(instruction).used_memory().iter().map(|memory| each(memory.access())).sum::<u32>().max(1)
}
