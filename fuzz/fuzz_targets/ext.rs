//! Any bytes as an image of ext2, ext3 or ext4: no panic, no endless loop, and no more rows than the image has room for.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| sysdock_fuzz::in_folder(|folder| sysdock_disk::fuzzing::ext(data, folder)));
