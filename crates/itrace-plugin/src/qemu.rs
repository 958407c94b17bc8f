//! The part of qemu's plugin interface that is used here. Written by hand, as no package contains
//! the header.
//!
//! Version 1 of the interface is that of qemu 7.2 (to 8.2), version 4 that of 9.2; later ones (5 in
//! 10.1) accept plugins of version 4. They differ in two functions, which are looked up when the
//! plugin is loaded:
//!
//! | | version 1 | version 4 |
//! |---|---|---|
//! | code of an instruction | `qemu_plugin_insn_data(insn)` returns its address | `(insn, to, length)` copies it |
//! | inline counter | `..._insn_exec_inline(insn, op, at, value)` | `..._insn_exec_inline_per_vcpu(insn, op, {scoreboard, offset}, value)` |
//!
//! qemu reads the version that a plugin requires (`qemu_plugin_version`) after loading it, so the
//! plugin's constructor can still choose.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;

type Pointer = *mut c_void;

/// Id of a loaded plugin.
pub(crate) type Id = u64;
/// A block that is being translated.
#[repr(C)]
pub(crate) struct Tb(c_void);
/// An instruction of the block.
#[repr(C)]
pub(crate) struct Insn(c_void);

pub(crate) type OnBlock = extern "C" fn(Id, *mut Tb);
pub(crate) type OnVcpu = extern "C" fn(Id, c_uint);
pub(crate) type OnPlugin = extern "C" fn(Id);
pub(crate) type OnExit = extern "C" fn(Id, *mut c_void);
pub(crate) type OnExecution = extern "C" fn(c_uint, *mut c_void);
/// Id of the plugin, number of the thread, number of the call, and its arguments.
pub(crate) type OnCall = extern "C" fn(Id, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
/// Id of the plugin, number of the thread, number of the call, and its result.
pub(crate) type OnCallEnd = extern "C" fn(Id, c_uint, i64, i64);
pub(crate) type OnAccess = extern "C" fn(c_uint, u32, u64, *mut c_void);

/// The beginning of qemu's description of itself.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) target_name: *const c_char,
    pub(crate) version_min: c_int,
    pub(crate) version_cur: c_int,
    pub(crate) system_emulation: bool,
    pub(crate) smp_vcpus: c_int,
}

/// Callbacks neither read nor write registers.
pub(crate) const NO_REGS: c_int = 0;
/// Loads and stores.
pub(crate) const READ_WRITE: c_int = 3;
const ADD: c_int = 0;

unsafe extern "C" {
    pub(crate) fn qemu_plugin_reset(id: Id, then: OnPlugin);
    pub(crate) fn qemu_plugin_register_vcpu_init_cb(id: Id, call: OnVcpu);
    pub(crate) fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, call: OnBlock);
    pub(crate) fn qemu_plugin_register_vcpu_syscall_cb(id: Id, call: OnCall);
    pub(crate) fn qemu_plugin_register_vcpu_syscall_ret_cb(id: Id, call: OnCallEnd);
    pub(crate) fn qemu_plugin_register_atexit_cb(id: Id, call: OnExit, data: *mut c_void);
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cb(tb: *mut Tb, call: OnExecution, flags: c_int, data: *mut c_void);
    pub(crate) fn qemu_plugin_register_vcpu_insn_exec_cb(insn: *mut Insn, call: OnExecution, flags: c_int, data: *mut c_void);
    pub(crate) fn qemu_plugin_register_vcpu_mem_cb(insn: *mut Insn, call: OnAccess, flags: c_int, what: c_int, data: *mut c_void);
    pub(crate) fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    pub(crate) fn qemu_plugin_tb_vaddr(tb: *const Tb) -> u64;
    pub(crate) fn qemu_plugin_tb_get_insn(tb: *const Tb, index: usize) -> *mut Insn;
    pub(crate) fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    pub(crate) fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    pub(crate) fn qemu_plugin_mem_is_store(info: u32) -> bool;
}

/// A counter for each processor: version 4.
#[derive(Clone, Copy)]
#[repr(C)]
struct PerVcpu {
    scoreboard: *mut c_void,
    offset: usize,
}

type Data1 = unsafe extern "C" fn(*const Insn) -> *const u8;
type Count1 = unsafe extern "C" fn(*mut Insn, c_int, *mut u64, u64);
type Data4 = unsafe extern "C" fn(*const Insn, *mut u8, usize) -> usize;
type Count4 = unsafe extern "C" fn(*mut Insn, c_int, PerVcpu, u64);
type NewScoreboard = unsafe extern "C" fn(usize) -> *mut c_void;
type FindCounter = unsafe extern "C" fn(*mut c_void, c_uint) -> *mut u64;

#[derive(Clone, Copy)]
enum Interface {
    V1 { data: Data1, count: Count1 },
    V4 { data: Data4, count: Count4, find: FindCounter },
}

/// The functions that differ between versions.
#[derive(Clone, Copy)]
pub(crate) struct Functions {
    interface: Interface,
    counter: PerVcpu,
}

// It contains pointers that qemu allows any thread to use.
unsafe impl Send for Functions {}
unsafe impl Sync for Functions {}

fn look_up(name: &CStr) -> Option<*mut c_void> {
    // Safe: the name ends in NUL, and the handle means the whole program.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Whether this qemu has version 4 of the interface, or a later one.
pub(crate) fn is_version_4() -> bool {
    look_up(c"qemu_plugin_read_memory_vaddr").is_some()
}

impl Functions {
    /// `None`: this qemu lacks some of them.
    pub(crate) fn find() -> Option<Functions> {
        let data = look_up(c"qemu_plugin_insn_data")?;
        // Safe: the version determines their types.
        unsafe {
            if !is_version_4() {
                let count = look_up(c"qemu_plugin_register_vcpu_insn_exec_inline")?;
                let (data, count) = (transmute::<Pointer, Data1>(data), transmute::<Pointer, Count1>(count));
                let counter = PerVcpu { scoreboard: std::ptr::null_mut(), offset: 0 };
                return Some(Functions { interface: Interface::V1 { data, count }, counter });
            }
            let count = look_up(c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu")?;
            let new = transmute::<Pointer, NewScoreboard>(look_up(c"qemu_plugin_scoreboard_new")?);
            let find = transmute::<Pointer, FindCounter>(look_up(c"qemu_plugin_scoreboard_find")?);
            let (data, count) = (transmute::<Pointer, Data4>(data), transmute::<Pointer, Count4>(count));
            let counter = PerVcpu { scoreboard: new(size_of::<u64>()), offset: 0 };
            Some(Functions { interface: Interface::V4 { data, count, find }, counter })
        }
    }

    /// Address of the processor's counter; `own` is used if qemu has none. Only valid once the
    /// processor has started: qemu 10.0 stops otherwise.
    pub(crate) fn counter(&self, vcpu: c_uint, own: *mut u64) -> *mut u64 {
        match self.interface {
            Interface::V1 { .. } => own,
            Interface::V4 { find, .. } => unsafe { find(self.counter.scoreboard, vcpu) },
        }
    }

    /// Count each execution of the instruction this many times, before it takes place.
    pub(crate) unsafe fn count(&self, insn: *mut Insn, own: *mut u64, times: u64) {
        match self.interface {
            Interface::V1 { count, .. } => unsafe { count(insn, ADD, own, times) },
            Interface::V4 { count, .. } => unsafe { count(insn, ADD, self.counter, times) },
        }
    }

    /// Append the code of the instruction. Returns its length.
    pub(crate) unsafe fn code(&self, insn: *const Insn, to: &mut Vec<u8>) -> u8 {
        let length = unsafe { qemu_plugin_insn_size(insn) };
        let at = to.len();
        match self.interface {
            Interface::V1 { data, .. } => to.extend_from_slice(unsafe { std::slice::from_raw_parts(data(insn), length) }),
            Interface::V4 { data, .. } => {
                to.resize(at + length, 0);
                unsafe { data(insn, to[at..].as_mut_ptr(), length) };
            }
        }
        length as u8
    }
}
