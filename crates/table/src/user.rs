//! The users for whom a privileged process works.

use std::{env, io};

use rustix::process::geteuid;

/// A user as whom a process continues, with all groups: they are looked up beforehand, because
/// nothing may be looked up between fork and exec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub uid: u32,
    /// The main group.
    pub gid: u32,
    pub groups: Vec<u32>,
}

impl User {
    /// Become this user, for good, in all threads. May be called between fork and exec.
    ///
    /// # Errors
    /// This process may not; it then may have some of the user's ids already.
    pub fn become_user(&self) -> io::Result<()> {
        // SAFETY: takes numbers, and as many groups as there are.
        let became = unsafe {
            libc::setgroups(self.groups.len(), self.groups.as_ptr()) == 0
                && libc::setresgid(self.gid, self.gid, self.gid) == 0
                && libc::setresuid(self.uid, self.uid, self.uid) == 0
        };
        if became { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Number of the user who called sudo; `None`: this process is not root, or root did not use sudo.
pub fn sudo_caller() -> Option<u32> {
    let uid = env::var("SUDO_UID").ok()?.parse().ok()?;
    (geteuid().is_root() && uid != 0).then_some(uid)
}
