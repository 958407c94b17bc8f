//! Mapped code of processes that exist when recording begins, from /proc: `layouts.h` has that of
//! later processes. What a process maps between this and the first event is unknown.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    events::{self, EVENT_MAPPED, EVENT_PATH, MappedEvent, PathEvent},
    stacks::vdso,
};

/// `LAYOUT_TAGS` and `GRANULE_SHIFT` of `layouts.h`.
const TAGS: usize = 1024;
const SHIFT: u32 = 17;
/// Size of `struct python`.
const PYTHON_BYTES: usize = 48;
/// Code of a file, from a line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Code {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

/// Reports images of processes, and the files in them.
#[derive(Debug)]
pub(crate) struct LayoutReporter {
    secret: u64,
    now_ns: u64,
    /// Ids of files by path.
    files: FxHashMap<String, Option<u64>>,
    images: FxHashSet<u64>,
    pub(crate) events: Vec<u8>,
}

impl LayoutReporter {
    pub(crate) fn new(secret: u64, now_ns: u64) -> Self {
        LayoutReporter { secret, now_ns, files: FxHashMap::default(), images: FxHashSet::default(), events: Vec::new() }
    }

    /// `struct layout` of a process, and the events that report its image. `None`: the process has
    /// ended, or may not be read.
    pub(crate) fn layout(&mut self, pid: u32) -> Option<Vec<u8>> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let codes: Vec<Code> = maps.lines().filter_map(parse).collect();
        let mut image = 0;
        for code in &codes {
            image = self.mapped(image, code);
        }
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
        let header = binary_of_python(&maps, program.as_deref().and_then(Path::to_str));
        // The vdso is not searched for return addresses: it makes calls only when it cannot answer
        // by itself.
        let of_files: Vec<Code> = codes.into_iter().filter(|code| code.path != vdso::NAME).collect();
        Some([layout(image, &of_files), python(header)].concat())
    }

    /// Returns the image that `parent` becomes.
    fn mapped(&mut self, parent: u64, code: &Code) -> u64 {
        let Some(file) = self.file(&code.path) else { return parent };
        let length = code.end - code.start;
        let image = [code.start, length, code.offset, file].into_iter().fold(mix(parent, self.secret), mix) | 1;
        if self.images.insert(image) {
            let (start, offset, at_ns) = (code.start, code.offset, self.now_ns);
            let mapped = MappedEvent { image, parent, start, length, offset, file, at_ns };
            events::add(&mut self.events, EVENT_MAPPED, 0, &mapped, &[]);
        }
        image
    }

    /// The id of a file, which is reported the first time.
    fn file(&mut self, path: &str) -> Option<u64> {
        if let Some(known) = self.files.get(path) {
            return *known;
        }
        let id = if path == vdso::NAME { Some(vdso::FILE) } else { self.file_of(path) };
        self.files.insert(path.into(), id);
        id
    }

    fn file_of(&mut self, path: &str) -> Option<u64> {
        fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|found| {
            let id = mix(mix(found.ino(), found.dev()), self.secret ^ u64::from(EVENT_PATH)) | 1;
            self.path(id, path, &found);
            id
        })
    }

    /// Add a path event. It needs no device and file system, because only code is looked up by it.
    fn path(&mut self, id: u64, path: &str, found: &fs::Metadata) {
        let mut names = Vec::new();
        for name in path.split('/').rev().filter(|name| !name.is_empty()) {
            names.push(name.len().min(255) as u8);
            names.extend(&name.as_bytes()[..name.len().min(255)]);
        }
        let event = PathEvent {
            id,
            inode: found.ino(),
            mode: (found.mode() & 0xffff) as u16,
            length: names.len() as u16,
            count: path.split('/').filter(|name| !name.is_empty()).count() as u16,
            size: found.size(),
            ..PathEvent::default()
        };
        events::add(&mut self.events, EVENT_PATH, 0, &event, &names);
    }
}

fn mix(a: u64, b: u64) -> u64 {
    let h = (a ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    h ^ (h >> 29)
}

/// Parse a line of /proc/PID/maps, if it is code of a file, or the code that the kernel adds to
/// each process: `start-end perms offset device inode path`.
fn parse(line: &str) -> Option<Code> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let permissions = words.next()?;
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    let offset = hex(words.next()?)?;
    let path = words.nth(2)?.trim_start();
    let (start, end) = (hex(start)?, hex(end)?);
    (permissions.as_bytes().get(2) == Some(&b'x') && (path.starts_with('/') || path == vdso::NAME) && start < end).then(|| Code {
        start,
        end,
        offset,
        path: path.into(),
    })
}

/// Address of the ELF header of the binary that may contain an interpreter of Python: a libpython,
/// else the program; 0: there is none.
fn binary_of_python(maps: &str, program: Option<&str>) -> u64 {
    let header_of = |line: &str| -> Option<(u64, String)> {
        let mut words = line.splitn(6, ' ');
        let start = u64::from_str_radix(words.next()?.split_once('-')?.0, 16).ok()?;
        let offset = words.nth(1)?;
        let path = words.nth(2)?.trim_start();
        offset.bytes().all(|digit| digit == b'0').then(|| (start, path.into()))
    };
    let headers: Vec<(u64, String)> = maps.lines().filter_map(header_of).collect();
    let is_library = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with("libpython"));
    let library = headers.iter().find(|(_, path)| is_library(path));
    library.or_else(|| headers.iter().find(|(_, path)| Some(path.as_str()) == program)).map_or(0, |(start, _)| *start)
}

/// `struct python`: an interpreter is searched for in this binary.
fn python(header: u64) -> Vec<u8> {
    const SOUGHT: u32 = 1;
    let state = if header == 0 { 0 } else { SOUGHT };
    let mut out = vec![0; PYTHON_BYTES];
    out[..8].copy_from_slice(&header.to_le_bytes());
    out[24..28].copy_from_slice(&state.to_le_bytes());
    out
}

/// `struct layout` without its last part: the image, the largest range of code, the span from the
/// first to the last, tags.
fn layout(image: u64, codes: &[Code]) -> Vec<u8> {
    let largest = codes.iter().max_by_key(|code| code.end - code.start);
    let (code_start, code_bytes) = largest.map_or((0, 0), |code| (code.start, code.end - code.start));
    let others = || codes.iter().filter(|code| Some(*code) != largest);
    let low = others().map(|code| code.start).min().unwrap_or(0);
    let high = others().map(|code| code.end).max().unwrap_or(0);
    let mut tags = vec![0u16; TAGS];
    for code in others() {
        for granule in (code.start >> SHIFT..=(code.end - 1) >> SHIFT).take(TAGS) {
            tags[granule as usize % TAGS] = (granule / TAGS as u64) as u16 + 1;
        }
    }
    let mut out = Vec::new();
    [image, code_start, code_bytes, low, high - low].iter().for_each(|word| out.extend(word.to_le_bytes()));
    tags.iter().for_each(|tag| out.extend(tag.to_le_bytes()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::{Families, paths};

    #[test]
    fn this_process_is_reported_as_a_chain_of_mappings() {
        let mut reporter = LayoutReporter::new(7, 9);
        let layout = reporter.layout(std::process::id()).unwrap();
        assert_eq!(layout.len(), 40 + 2 * TAGS + PYTHON_BYTES);
        let (mut rest, mut image, mut own) = (&reporter.events[..], 0, false);
        let here = this_process_is_reported_as_a_chain_of_mappings as fn() as usize as u64;
        while let Some((event, after)) = events::split(rest) {
            assert!(Families::is_whole(&event).is_some_and(|whole| whole));
            if event.kind == EVENT_MAPPED {
                let (mapped, _) = event.read::<MappedEvent>().unwrap();
                assert_eq!((mapped.parent, mapped.at_ns), (image, 9));
                image = mapped.image;
                own |= (mapped.start..mapped.start + mapped.length).contains(&here);
            } else {
                let path = paths::Path::of(&event).unwrap();
                let names: Vec<_> = path.names().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                let path_again = format!("/{}", names.into_iter().rev().collect::<Vec<_>>().join("/"));
                let found = fs::metadata(path_again).unwrap();
                assert_eq!((found.ino(), found.len()), (path.inode, path.size));
            }
            rest = after;
        }
        assert!(own && layout[..8] == image.to_le_bytes());
        assert!(reporter.layout(u32::MAX).is_none());
    }

    #[test]
    fn python_is_sought_in_its_library_else_in_the_program() {
        let program =
            "5000-6000 r--p 00000000 fe:00 1 /usr/bin/python3.11\n6000-7000 r-xp 00001000 fe:00 1 /usr/bin/python3.11\n";
        let library = "7f00-8000 r--p 00000000 fe:00 2                  /opt/lib/libpython3.12.so.1.0\n";
        assert_eq!(binary_of_python(program, Some("/usr/bin/python3.11")), 0x5000);
        assert_eq!(binary_of_python(&[program, library].concat(), Some("/usr/bin/python3.11")), 0x7f00);
        assert_eq!(binary_of_python(library, None), 0x7f00);
        assert_eq!(binary_of_python("garbage", Some("garbage")), 0);
    }

    #[test]
    fn only_code_of_files_and_of_the_kernel_is_taken() {
        let code = parse("7f00-8000 r-xp 00001000 fe:00 12     /usr/lib/a b.so").unwrap();
        assert_eq!(code, Code { start: 0x7f00, end: 0x8000, offset: 0x1000, path: "/usr/lib/a b.so".into() });
        assert_eq!(parse("7f00-8000 rw-p 00001000 fe:00 12     /usr/lib/a.so"), None);
        assert!(parse("7f00-8000 r-xp 00000000 00:00 0      [vdso]").is_some());
        assert_eq!(parse("7f00-8000 r-xp 00000000 00:00 0 "), None);
        assert_eq!(parse("garbage"), None);
    }
}
