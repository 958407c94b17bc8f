//! As whom a run works in a folder.
//!
//! Root works in another user's folder as that user: whatever the user puts in the way of the run,
//! only what belongs to the user can change.

use std::{io, os::fd::AsFd};

use nix::unistd::{self, Uid};
use rustix::{fs::fstat, process::geteuid};
use sysdock_table::User;

/// The group of a user who is not in the list of users: `nogroup`, which owns nothing.
const NOBODYS_GROUP: u32 = 65534;

/// As whom to work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actor {
    /// As the user of this process.
    Ourselves,
    /// As this user, who owns the folder, without further groups.
    Owner(User),
}

impl Actor {
    /// The actor in an open folder.
    pub(crate) fn of(folder: impl AsFd) -> io::Result<Actor> {
        let owner = fstat(folder)?.st_uid;
        if !geteuid().is_root() || owner == 0 {
            return Ok(Actor::Ourselves);
        }
        let known = unistd::User::from_uid(Uid::from_raw(owner)).ok().flatten();
        let gid = known.map_or(NOBODYS_GROUP, |user| user.gid.as_raw());
        Ok(Actor::Owner(User { uid: owner, gid, groups: Vec::new() }))
    }

    /// The user who does the work.
    pub(crate) fn user(&self) -> u32 {
        match self {
            Actor::Ourselves => geteuid().as_raw(),
            Actor::Owner(user) => user.uid,
        }
    }

    /// Become the actor, for good.
    pub(crate) fn become_user(&self) -> io::Result<()> {
        match self {
            Actor::Ourselves => Ok(()),
            Actor::Owner(user) => user.become_user(),
        }
    }
}
