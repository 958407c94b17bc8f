//! Any bytes as the dump of a kernel: no panic, no endless loop, and an answer to each question, even if it is that nothing can be read.

#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use serde_json::json;
use sysdock_dump::{Kernel, Part, Question, Source, write};
use sysdock_table::{Ending, Manifest, Recording};

fuzz_target!(|data: &[u8]| {
    let folder = sysdock_fuzz::folder();
    let file = folder.path().join("core");
    fs::write(&file, data).expect("room on the disk");
    let Ok(mut kernel) = Kernel::open(Source::File(file.clone())) else { return };
    let mut recording = Recording::create(&folder.path().join("rec"), Manifest::new("fuzz", "tasks", "dump")).expect("an empty folder");
    write(&kernel, &file, &Part::ALL, &mut recording, &|_| {}).expect("room on the disk");
    recording.finish(Ending::EndOfInput).expect("room on the disk");
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
});
