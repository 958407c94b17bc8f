//! What the fuzzing targets call (feature `fuzzing`), and a test with the inputs that fuzzing begins with.

use std::{fs, path::Path};

use serde_json::json;
use sysdock_table::{Ending, Manifest, Recording};

use crate::{Kernel, Part, Question, Source, write};

/// Any bytes as the dump of a kernel: an answer to each question, even if it is that nothing can be read.
///
/// # Panics
/// If the recording cannot be written.
pub fn dump(data: &[u8], folder: &Path) {
    let (file, rec) = (folder.join("core"), folder.join("rec"));
    // Not the one that may still be mapped.
    let _ = fs::remove_file(&file);
    fs::write(&file, data).expect("room on the disk");
    let Ok(mut kernel) = Kernel::open(Source::File(file.clone())) else { return };
    let mut recording = Recording::create(&rec, Manifest::new("fuzz", "tasks", "dump")).expect("an empty folder");
    write(&kernel, &file, &Part::ALL, &mut recording, &|_| {}).expect("room on the disk");
    recording.finish(Ending::EndOfInput).expect("room on the disk");
    fs::remove_dir_all(&rec).expect("it is there");
    let _ = kernel.hide_users();
    for question in [
        json!({ "op": "type", "name": "task_struct" }),
        json!({ "op": "read", "structure": "task_struct", "addresses": [0xffff_8880_0000_8000_u64], "members": ["pid", "comm", "tasks.next->next"] }),
        json!({ "op": "list", "structure": "task_struct", "head": 0xffff_8880_0000_8018_u64, "member": "tasks" }),
        json!({ "op": "tree", "structure": "rb_node", "root": 0xffff_8880_0000_8018_u64, "member": "rb_left" }),
        json!({ "op": "xarray", "address": 0xffff_8880_0000_8018_u64 }),
        json!({ "op": "search", "bytes": "6c6f6f70", "limit": 9 }),
    ] {
        let question: Question = serde_json::from_value(question).expect("a question");
        let _ = kernel.answer(&question);
    }
}

/// Any bytes as the answers of a monitor of qemu.
pub fn monitor(data: &[u8], _: &Path) {
    let _ = crate::format::ask_monitor(data);
}

#[cfg(test)]
mod tests {
    #[test]
    fn any_bytes_are_a_monitor() {
        sysdock_seeds::each("monitor", 20_000, 16_384, super::monitor);
    }

    #[test]
    fn any_bytes_are_a_dump() {
        sysdock_seeds::each("dump", 4_000, 131_072, super::dump);
    }
}
