//! Kinds of kernel locks.

use crate::events::{LOCK_MUTEX, LOCK_PERCPU, LOCK_READ, LOCK_RT, LOCK_SPIN, LOCK_WRITE};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Spinlock,
    Rwlock,
    Mutex,
    Rwsem,
    PercpuRwsem,
    RtMutex,
    Semaphore,
}

impl Kind {
    /// The kind for flags of the tracepoint.
    pub(super) fn of(flags: u32) -> Kind {
        let has = |wanted| flags & wanted != 0;
        if has(LOCK_MUTEX) {
            Kind::Mutex
        } else if has(LOCK_RT) {
            Kind::RtMutex
        } else if has(LOCK_PERCPU) {
            Kind::PercpuRwsem
        } else if has(LOCK_SPIN) {
            if has(LOCK_READ | LOCK_WRITE) { Kind::Rwlock } else { Kind::Spinlock }
        } else if has(LOCK_READ | LOCK_WRITE) {
            Kind::Rwsem
        } else {
            Kind::Semaphore
        }
    }

    /// The value of `locks.kind`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Spinlock => "spinlock",
            Kind::Rwlock => "rwlock",
            Kind::Mutex => "mutex",
            Kind::Rwsem => "rwsem",
            Kind::PercpuRwsem => "percpu_rwsem",
            Kind::RtMutex => "rtmutex",
            Kind::Semaphore => "semaphore",
        }
    }

    /// Names of the kernel's types for this kind: a member of one of them is such a lock. For
    /// spinlocks and rwlocks the tracepoint reports the address of the innermost part, which all of
    /// these types begin with.
    pub(super) fn types(self) -> &'static [&'static str] {
        match self {
            Kind::Spinlock => &["spinlock", "spinlock_t", "raw_spinlock", "raw_spinlock_t", "qspinlock"],
            Kind::Rwlock => &["rwlock_t", "qrwlock"],
            Kind::Mutex => &["mutex"],
            Kind::Rwsem => &["rw_semaphore"],
            Kind::PercpuRwsem => &["percpu_rw_semaphore"],
            Kind::RtMutex => &["rt_mutex", "rt_mutex_base"],
            Kind::Semaphore => &["semaphore"],
        }
    }
}

/// How the lock was requested: `lock_waits.mode`. `None`: there is only one way.
pub(super) fn mode(flags: u32) -> Option<&'static str> {
    match (flags & LOCK_READ != 0, flags & LOCK_WRITE != 0) {
        (true, _) => Some("read"),
        (false, true) => Some("write"),
        (false, false) => None,
    }
}
