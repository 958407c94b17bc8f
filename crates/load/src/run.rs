//! A run: the steps of a plan, one after another, in one folder of its own.

use std::{os::fd::AsFd, path::Path, time::Duration};

use sysdock_table::{Cancel, facts::load as facts};

use crate::{
    Item, LoadError, Measured, Status, Step,
    data::Pool,
    device::FileSystem,
    items::{self},
    judge,
    workers::{self, Caller, Surroundings},
    workspace::{Leftover, Workspace},
};

/// Fraction of the free space that may be used.
const ROOM: f64 = 0.9;

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A step is given up without progress for this long.
    pub patience: Duration,
    /// Seed of random numbers: the same seed causes the same offsets and contents.
    pub seed: u64,
    /// The user who called sudo, whose links lead where this user wants.
    pub caller: Option<u32>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { patience: Duration::from_secs(60), seed: 0x5d0c, caller: None }
    }
}

/// A folder prepared for load.
pub struct Load {
    workspace: Workspace,
    file_system: FileSystem,
    pool: Pool,
    settings: Settings,
    host: String,
    /// Size of the existing common file [B].
    data_bytes: u64,
    steps_done: u64,
    /// Folders of killed runs that stay, and why.
    pub left: Vec<Leftover>,
}

impl Load {
    /// Create a folder in `directory`, and remove the leftovers of killed runs there.
    ///
    /// # Errors
    ///
    /// The directory is none, cannot be written, or does not answer.
    pub fn new(directory: &Path, settings: Settings) -> Result<Self, LoadError> {
        let (workspace, left) = Workspace::create(directory, &settings)?;
        let file_system = FileSystem::of(&workspace);
        let pool = Pool::new(settings.seed);
        Ok(Load { workspace, file_system, pool, settings, host: host_name(), data_bytes: 0, steps_done: 0, left })
    }

    /// Facts of the file system for the table of the environment: name and value.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, Option<String>)> {
        let mut facts = self.file_system.facts();
        if let Some(room) = room(&self.workspace) {
            facts.push(("size".into(), Some(format!("{} B", room.size))));
            facts.push(("free".into(), Some(format!("{} B", room.free))));
            facts.push(("free inodes".into(), Some(format!("{} of {}", room.free_inodes, room.inodes))));
        }
        facts
    }

    /// Do a step. Returns a row for each of its operations. Failures are statuses of rows.
    ///
    /// # Errors
    ///
    /// The step is invalid.
    pub fn measure(&mut self, step: &Step, cancel: &Cancel, caller: &mut dyn Caller) -> Result<Vec<Measured>, LoadError> {
        step.check()?;
        if let Some((needed, free)) = self.lacks_room(step) {
            let note = facts::no_room(needed, free);
            return Ok(judge::rows_without(step, Status::Full, &note, &self.host));
        }
        let around = Surroundings {
            workspace: &self.workspace,
            file_system: &self.file_system,
            pool: &self.pool,
            seed: self.settings.seed.wrapping_add(self.steps_done << 20),
            patience: self.settings.patience,
            cancel,
        };
        let outcome = workers::measure(step, self.data_bytes, &around, caller);
        self.steps_done += 1;
        let rows = match outcome {
            Err(error) => judge::rows_without(step, Status::Failed, &facts::error(error.to_string().to_lowercase()), &self.host),
            Ok(outcome) => self.rows_of(step, &outcome),
        };
        self.clear(step);
        Ok(rows)
    }

    /// The rows of a step for which there is no time.
    #[must_use]
    pub fn skipped(&self, step: &Step) -> Vec<Measured> {
        judge::rows_without(step, Status::Skipped, &facts::time_up(), &self.host)
    }

    fn rows_of(&mut self, step: &Step, outcome: &workers::StepOutcome) -> Vec<Measured> {
        self.data_bytes = outcome.data_bytes;
        if let Some((started, error)) = &outcome.refused {
            let wanted = items::workers(step);
            let note = facts::too_few_processes(*started, wanted, error.to_string().to_lowercase());
            return judge::rows_without(step, Status::Failed, &note, &self.host);
        }
        let rows = |phase| judge::rows(step, phase, &self.file_system, &self.host);
        let mut rows: Vec<_> = outcome.phases.iter().flat_map(rows).collect();
        // Each operation of a requested step gets a row: rows of several hosts are matched by their
        // order.
        if outcome.phases.last().is_some_and(|last| last.hung) {
            let begun: Vec<_> = outcome.phases.iter().flat_map(|phase| &phase.operations).copied().collect();
            rows.extend(judge::rows_of_others(step, &begun, &facts::after_given_up(), &self.host));
        }
        rows
    }

    /// Remove the files of a step before the next one; the common file is kept while steps use it.
    fn clear(&mut self, step: &Step) {
        if step.item != Item::Control && self.workspace.clear(&[items::DATA]).is_err() && step.item.uses_data() {
            self.data_bytes = 0;
        }
    }

    /// The needed space, and the usable space, if the latter is too small [B].
    fn lacks_room(&self, step: &Step) -> Option<(u64, u64)> {
        let free = (room(&self.workspace)?.free as f64 * ROOM) as u64;
        let reused = if step.item.uses_data() { self.data_bytes } else { 0 };
        let needed = step.room().saturating_sub(reused);
        (needed > free).then_some((needed, free))
    }

    /// Remove everything that was created.
    ///
    /// # Errors
    ///
    /// Something stays: the next run removes it.
    pub fn end(self) -> Result<(), LoadError> {
        let path = self.workspace.path.clone();
        self.workspace.remove().map_err(|error| LoadError::Io(path, error))
    }
}

/// The space of a file system.
struct Room {
    size: u64,
    /// Available to this user [B].
    free: u64,
    inodes: u64,
    free_inodes: u64,
}

fn room(folder: impl AsFd) -> Option<Room> {
    let found = rustix::fs::fstatvfs(folder).ok()?;
    Some(Room {
        size: found.f_blocks * found.f_frsize,
        free: found.f_bavail * found.f_frsize,
        inodes: found.f_files,
        free_inodes: found.f_favail,
    })
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").map_or_else(|_| "unknown".into(), |name| name.trim().to_string())
}
