//! As whom a run works in a folder.
//!
//! Root works in another user's folder as that user: whatever the user puts in the way of the run,
//! only what belongs to the user can change.

use std::{io, os::fd::AsFd};

use nix::unistd::{Gid, Uid, User, setgroups, setresgid, setresuid};
use rustix::{fs::fstat, process::geteuid};

/// The group of a user who is not in the list of users: `nogroup`, which owns nothing.
const NOBODYS_GROUP: u32 = 65534;

/// As whom to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// As the user of this process.
    Ourselves,
    /// As this user, who owns the folder: user and group.
    Owner(u32, u32),
}

impl Actor {
    /// The actor in an open folder.
    pub(crate) fn of(folder: impl AsFd) -> io::Result<Actor> {
        let owner = fstat(folder)?.st_uid;
        if !geteuid().is_root() || owner == 0 {
            return Ok(Actor::Ourselves);
        }
        let known = User::from_uid(Uid::from_raw(owner)).ok().flatten();
        Ok(Actor::Owner(owner, known.map_or(NOBODYS_GROUP, |user| user.gid.as_raw())))
    }

    /// The user who does the work.
    pub(crate) fn user(self) -> u32 {
        match self {
            Actor::Ourselves => geteuid().as_raw(),
            Actor::Owner(user, _) => user,
        }
    }

    /// Become the actor, for good, in a process of one thread.
    pub(crate) fn become_user(self) -> io::Result<()> {
        let Actor::Owner(user, group) = self else { return Ok(()) };
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        setgroups(&[])?;
        setresgid(group, group, group)?;
        Ok(setresuid(user, user, user)?)
    }
}
