//! Any bytes as the event file of an instruction trace, with the program that it is of: no panic, no endless loop, and tables.

#![no_main]

use std::{fs, io};

use libfuzzer_sys::fuzz_target;
use sysdock_itrace::{Chosen, EVENTS, Filter, convert, each_instruction, print_lines};
use sysdock_table::{Cancel, Ending, Manifest, Recording};

fuzz_target!(|data: &[u8]| {
    let folder = sysdock_fuzz::folder();
    fs::write(folder.path().join(EVENTS), data).expect("room on the disk");
    let manifest = Manifest::new("fuzz", "instructions", "itrace");
    let mut recording = Recording::create(&folder.path().join("rec"), manifest).expect("an empty folder");
    if convert(folder.path(), None, &mut recording, &Cancel::default(), &mut |_, _| {}).is_err() {
        return;
    }
    recording.finish(Ending::EndOfInput).expect("room on the disk");
    let _ = each_instruction(folder.path(), &Chosen::default(), &mut |_| true);
    let _ = print_lines(folder.path(), &Filter { first_step: 0, limit: 10_000 }, &mut io::sink());
});
