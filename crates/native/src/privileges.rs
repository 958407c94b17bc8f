//! Who asks for a recording, what the recorder may do, and what it gives up once its probes are attached.

use std::{env, ffi::CString, fs, io};

/// Capabilities by number (linux/capability.h).
const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const KILL: u32 = 5;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// The user who called sudo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) name: CString,
}

impl Caller {
    /// `None`: the recorder runs as who started it.
    pub(crate) fn find() -> Option<Caller> {
        // SAFETY: no preconditions.
        if unsafe { libc::geteuid() } != 0 {
            return None;
        }
        let number = |name| env::var(name).ok()?.parse().ok();
        let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
        let name = CString::new(env::var("SUDO_USER").ok()?).ok()?;
        (uid != 0).then_some(Caller { uid, gid, name })
    }

    /// Become this user, for good. Called between fork and exec.
    pub(crate) fn become_user(&self) -> io::Result<()> {
        let check = |result: libc::c_int| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        // SAFETY: `name` is a NUL-terminated string; the others take numbers.
        unsafe {
            check(libc::initgroups(self.name.as_ptr(), self.gid))?;
            check(libc::setresgid(self.gid, self.gid, self.gid))?;
            check(libc::setresuid(self.uid, self.uid, self.uid))
        }
    }
}

/// What the kernel recorder needs and this process lacks, by name.
pub(crate) fn missing() -> Vec<&'static str> {
    let has = effective();
    if has & (1 << SYS_ADMIN) != 0 {
        return Vec::new();
    }
    [(BPF, "CAP_BPF"), (PERFMON, "CAP_PERFMON")]
        .into_iter()
        .filter(|(bit, _)| has & (1 << bit) == 0)
        .map(|(_, name)| name)
        .collect()
}

fn effective() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// Give up every capability but those that passing on signals and writing the recording may need, and the way back to any.
pub(crate) fn drop_rest() -> io::Result<()> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    #[repr(C)]
    #[derive(Clone, Copy)]
    struct Data {
        effective: u32,
        permitted: u32,
        inheritable: u32,
    }
    // capset(2): version 3 has two sets of 32.
    let header = Header { version: 0x2008_0522, pid: 0 };
    let kept = (effective() as u32) & (1 << CHOWN | 1 << DAC_OVERRIDE | 1 << KILL);
    let low = Data { effective: kept, permitted: kept, inheritable: 0 };
    let data = [low, Data { effective: 0, permitted: 0, inheritable: 0 }];
    // SAFETY: both structures have the layout of capset(2), version 3, and live through the call.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::syscall(libc::SYS_capset, &raw const header, data.as_ptr()) != 0
        {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
