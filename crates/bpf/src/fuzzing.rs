//! What the fuzzing targets call (feature `fuzzing`), and tests with the inputs that fuzzing has kept.

use std::{fs, os::unix::ffi::OsStrExt, path::Path};

use sysdock_symbols::{demangle, symbols};
use sysdock_table::{Cancel, Manifest, Recording};

use crate::{
    BpfError, SPOOL,
    conversion::places::Places,
    convert,
    events::{self, EVENT_PATH, EVENT_PYTHON, EVENT_PYTHON_CODE, EVENT_STACK, MappedEvent, PathEvent},
    families::{paths, stacks::rows::StackRows},
    stacks::{
        events::StackPart,
        kernel::KernelNames,
        python_events::{PythonCode, PythonFrames},
        unwind::{Copy, Frames},
    },
};

/// Address at which the file of a binary is mapped, and its id in events.
const START: u64 = 0x40_0000;
const FILE: u64 = 1;
const IMAGE: u64 = 2;

/// Any bytes as the spool of a recorder: a recording, or a refusal. Checksums of frames are not
/// verified, so that their contents are read.
///
/// # Panics
/// If the coverage is not truthful.
pub fn spool(data: &[u8], folder: &Path) {
    let (spool, rec) = (folder.join(SPOOL), folder.join("rec"));
    // A new one: a process that another test has just forked may still hold the lock of the last.
    let _ = fs::remove_file(&spool);
    fs::write(&spool, data).expect("room on the disk");
    let mut recording = Recording::create(&rec, Manifest::new("fuzz", "events", "calls")).expect("an empty folder");
    match convert(&spool, &mut recording, &Cancel::default(), &mut |_| {}) {
        Ok(ending) => {
            let manifest = recording.finish(ending).expect("room on the disk");
            assert!(manifest.capture().understood <= manifest.capture().total);
            fs::remove_dir_all(&rec).expect("it is there");
        }
        Err(BpfError::NotASpool(_)) => recording.abandon(),
        Err(error) => panic!("{error}"),
    }
}

/// Read a file as a binary that was mapped at 0x400000, find the frames of a stack in it and the functions at these. `data`: how long the copy
/// of the stack is (16 bits), eight registers as differences to 0x400000, the copy, the file, which is written to `path`.
///
/// # Panics
/// If the file cannot be written.
pub fn elf(data: &[u8], path: &Path) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let Some((registers, rest)) = rest.split_first_chunk::<64>() else { return };
    let (bytes, file) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*length))));
    // The earlier file may still be mapped.
    let _ = fs::remove_file(path);
    fs::write(path, file).expect("room on the disk");
    let number = |at: usize| u64::from_le_bytes(registers[8 * at..8 * at + 8].try_into().expect("eight bytes"));
    let registers = std::array::from_fn(|at| number(at).wrapping_add(START));
    let copy = Copy { image: IMAGE, registers, interrupted: length[0] & 1 == 1, bytes: bytes.to_vec() };
    let mut frames = Frames::default();
    let (start, length) = (START, file.len() as u64);
    let mut places = places(path);
    places.images.mapped(MappedEvent { image: IMAGE, start, length, file: FILE, ..MappedEvent::default() });
    let (found, _) = frames.of(&copy, None, &places, &|_| i64::MAX);
    // As for all files of frames, symbols are read only if the file is a binary.
    if frames.objects.all.iter().all(|object| object.binary.is_none()) {
        return;
    }
    let mut addresses: Vec<u64> = found.iter().map(|frame| frame.address).collect();
    addresses.extend([0, 1, number(0), number(1)]);
    assert_eq!(symbols(path, &addresses, demangle).len(), addresses.len());
}

/// The path event of one file.
fn places(path: &Path) -> Places {
    let mut names = Vec::new();
    for name in path.as_os_str().as_bytes().split(|byte| *byte == b'/').rev().filter(|name| !name.is_empty()) {
        names.push(name.len() as u8);
        names.extend(name);
    }
    let event = PathEvent { id: FILE, mode: 0o100_644, length: names.len() as u16, ..PathEvent::default() };
    let (mut bytes, mut places) = (Vec::new(), Places::default());
    events::add(&mut bytes, EVENT_PATH, 0, &event, &names);
    let (raw, _) = events::split(&bytes).expect("an event");
    places.add(&paths::Path::of(&raw).expect("a whole one"));
    places
}

/// Process events about functions of Python and the stacks that contain them, and write the rows of
/// `stacks`.
///
/// # Panics
/// If the recording cannot be written.
pub fn python_stacks(data: &[u8], folder: &Path) {
    let mut recording =
        Recording::create(&folder.join("rec"), Manifest::new("fuzz", "events", "calls")).expect("an empty folder");
    let (mut stacks, mut places) = (StackRows::default(), Places::default());
    let mut rest = data;
    while let Some((event, after)) = events::split(rest) {
        rest = after;
        match event.kind {
            EVENT_PYTHON_CODE => PythonCode::of(&event).iter().for_each(|code| places.codes.add(code)),
            EVENT_PYTHON => PythonFrames::of(&event).iter().for_each(|frames| stacks.python(frames, &places.codes)),
            EVENT_STACK => {
                let Some(part) = StackPart::of(&event) else { continue };
                stacks.part(&part);
                stacks.number(part.id, (part.tid, part.of), None, &places, &|_| 0);
            }
            _ => {}
        }
    }
    stacks.write(&places, (&KernelNames::open(), None), &mut recording).expect("room on the disk");
    recording.abandon();
}

#[cfg(test)]
mod tests {
    use crate::testing::UNCHECKED;

    #[test]
    fn any_bytes_are_a_spool() {
        UNCHECKED.set(true);
        sysdock_seeds::each("spool", 2_000, 65_536, super::spool);
    }

    #[test]
    fn any_bytes_are_a_binary() {
        sysdock_seeds::each("elf", 60_000, 65_536, |data, folder| super::elf(data, &folder.join("binary")));
    }

    #[test]
    fn any_bytes_are_stacks_of_python() {
        sysdock_seeds::each("python_stacks", 60_000, 16_384, super::python_stacks);
    }
}
