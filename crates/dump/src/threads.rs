//! Names of threads of the kernel, as in /proc/PID/comm. They may be longer than the 15 bytes that
//! a task keeps, and those of workers contain the workqueue (`proc_task_name` of fs/proc/array.c,
//! `wq_worker_comm` of kernel/workqueue.c).

use sysdock_symbols::btf::Field;

use crate::{error::Fault, kernel::Kernel};

/// Flags of a task.
const WORKER: u64 = 0x20;
const OF_KERNEL: u64 = 0x20_0000;
/// Prefix of the name of a thread that works when no other can be created (since 6.9).
const RESCUER: &str = "kworker/R-";

/// Offsets of the members that contain names. Structures of workers may be missing.
pub(crate) struct Threads {
    flags: Field,
    /// In the task: its `struct kthread` (since 5.17).
    private: Field,
    full_name: Option<Field>,
    workers: Option<Workers>,
}

struct Workers {
    /// In `struct kthread`: its worker.
    data: Field,
    pool: Field,
    current: Field,
    description: Field,
    rescued: Field,
    queue_name: Field,
}

impl Workers {
    fn of(kernel: &Kernel) -> Result<Workers, Fault> {
        Ok(Workers {
            data: kernel.field("kthread", "data")?,
            pool: kernel.field("worker", "pool")?,
            current: kernel.field("worker", "current_work")?,
            description: kernel.field("worker", "desc")?,
            rescued: kernel.field("worker", "rescue_wq")?,
            queue_name: kernel.field("workqueue_struct", "name")?,
        })
    }

    fn name(&self, kernel: &Kernel, thread: u64, comm: &str) -> Result<String, Fault> {
        let worker = kernel.number(thread, self.data)?;
        let rescued = if comm.starts_with(RESCUER) { kernel.number(worker, self.rescued)? } else { 0 };
        let mut name = if rescued == 0 { comm.into() } else { RESCUER.to_string() + &kernel.text(rescued, self.queue_name)? };
        if kernel.number(worker, self.pool)? != 0 {
            let description = kernel.text(worker, self.description)?;
            if !description.is_empty() {
                name.push(if kernel.number(worker, self.current)? != 0 { '+' } else { '-' });
                name.push_str(&description);
            }
        }
        Ok(name)
    }
}

impl Threads {
    /// # Errors
    /// A [`Fault`]: this kernel keeps no more of its threads than of any task.
    pub(crate) fn of(kernel: &Kernel) -> Result<Threads, Fault> {
        Ok(Threads {
            flags: kernel.field("task_struct", "flags")?,
            private: kernel.field("task_struct", "worker_private")?,
            full_name: kernel.field("kthread", "full_name").ok(),
            workers: Workers::of(kernel).ok(),
        })
    }

    /// The name of the task at an address with the short name `comm`, if it has another one.
    pub(crate) fn name(&self, kernel: &Kernel, task: u64, comm: &str) -> Result<Option<String>, Fault> {
        let flags = kernel.number(task, self.flags)?;
        if flags & OF_KERNEL == 0 {
            return Ok(None);
        }
        // The idle task of a processor has none, and an ending thread has freed it.
        let thread = kernel.number(task, self.private)?;
        match (&self.workers, self.full_name) {
            _ if thread == 0 => Ok(None),
            (Some(workers), _) if flags & WORKER != 0 => workers.name(kernel, thread, comm).map(Some),
            (_, Some(full_name)) if flags & WORKER == 0 => match kernel.number(thread, full_name)? {
                0 => Ok(None),
                name => kernel.string(name).map(Some),
            },
            _ => Ok(None),
        }
    }
}
