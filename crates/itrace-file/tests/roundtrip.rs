//! Tests that what was written is read back, and that damaged data is not read as something else.

use std::fs::{self, File, OpenOptions};
use std::path::Path;

use sysdock_itrace_file::{Access, Block, Event, Facts, Note, Reader, SECTION_EVENTS, Writer};

/// Pseudo-random numbers, the same each time (xorshift).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn blocks(count: u64) -> Vec<Block> {
    (0..count)
        .map(|number| {
            let lengths: Box<[u8]> = (0..1 + number % 7).map(|index| 1 + ((number + index) % 15) as u8).collect();
            let bytes = lengths.iter().map(|&length| usize::from(length)).sum();
            let kernel = if number % 3 == 0 { 0xffff_ffff_8100_0000 } else { 0x5555_5555_4000 };
            Block { address: kernel + 64 * number, code: vec![number as u8; bytes].into(), lengths }
        })
        .collect()
}

/// Loops over blocks with accesses of all kinds, notes, and unpredictable words.
fn words(blocks: &[Block], count: usize, seed: u64) -> Vec<u64> {
    let mut numbers = Numbers(seed);
    let mut words = Vec::new();
    while words.len() < count {
        let loops = 1 + numbers.below(20);
        let first = numbers.below(blocks.len() as u64);
        for turn in 0..loops {
            for step in 0..3 {
                let id = (first + step) % blocks.len() as u64;
                words.push(Event::Block(id as u32).pack());
                // Sometimes more than a unit has slots.
                let accesses = if numbers.below(500) == 0 { 200 } else { id % 4 };
                for index in 0..accesses {
                    let address = match index % 3 {
                        0 => 0x7fff_0000_1000 + 8 * turn,
                        1 => 0xffff_8880_0000_0000 + numbers.below(1 << 30),
                        _ => numbers.next(),
                    };
                    let access = Access {
                        address: ((address << 16) as i64 >> 16) as u64,
                        store: index % 2 == 0,
                        size_log2: (index % 7) as u8,
                        instruction: (index % 512) as u16,
                    };
                    words.push(Event::Access(access).pack());
                }
            }
        }
        let notes = [Note::Left(3), Note::Marker(7), Note::Task(2), Note::Untraced(257), Note::Signal(11)];
        words.push(Event::Note(notes[numbers.below(5) as usize]).pack());
    }
    words
}

fn write(path: &Path, blocks: &[Block], words: &[u64]) {
    let mut header = Facts::new();
    header.insert("backend".into(), "test".into());
    let mut writer = Writer::create(File::create(path).unwrap(), &header).unwrap();
    for (number, block) in blocks.iter().enumerate() {
        assert_eq!(writer.define(block), number as u32);
    }
    // In parts of all sizes.
    let mut rest = words;
    let mut size = 1;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(size.min(rest.len()));
        writer.push(piece).unwrap();
        rest = tail;
        size = size * 2 + 1;
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.events, words.len() as u64);
    assert_eq!(summary.bytes, fs::metadata(path).unwrap().len());
}

fn read(path: &Path) -> (Reader, Vec<u64>) {
    let reader = Reader::open(File::open(path).unwrap()).unwrap();
    let mut words = Vec::new();
    for section in &reader.sections {
        reader.events(section, &mut words).unwrap();
    }
    (reader, words)
}

#[test]
fn every_word_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let blocks = blocks(97);
    // More than one section.
    let words = words(&blocks, SECTION_EVENTS as usize + 100_000, 42);
    write(&path, &blocks, &words);
    let (reader, found) = read(&path);
    assert_eq!(reader.blocks, blocks);
    assert!(reader.is_complete());
    assert_eq!(reader.header["backend"], "test");
    assert!(reader.sections.len() > 1);
    assert!(found == words, "{} words, {} found", words.len(), found.len());
    let steps: u64 = words
        .iter()
        .filter_map(|&word| match Event::unpack(word) {
            Some(Event::Block(id)) => Some(blocks[id as usize].lengths.len() as u64),
            _ => None,
        })
        .sum();
    let last = reader.sections.last().unwrap();
    assert_eq!(last.first_step + last.steps, steps);
}

#[test]
fn events_and_words_are_the_same() {
    let blocks = blocks(10);
    for word in words(&blocks, 10_000, 7) {
        assert_eq!(Event::unpack(word).unwrap().pack(), word);
    }
    assert_eq!(Event::unpack(3 << 62), None);
    assert_eq!(Event::unpack(2 << 62 | 63 << 56), None);
}

#[test]
fn facts_are_added_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    write(&path, &blocks(3), &words(&blocks(3), 100, 1));
    let mut facts = Facts::new();
    facts.insert("tasks".into(), 3.into());
    Writer::append_facts(OpenOptions::new().append(true).open(&path).unwrap(), &facts).unwrap();
    let (reader, _) = read(&path);
    assert_eq!(reader.facts["tasks"], 3);
    assert!(reader.is_complete());
}

#[test]
fn a_file_that_was_cut_gives_what_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let blocks = blocks(40);
    let words = words(&blocks, SECTION_EVENTS as usize + 50_000, 9);
    write(&path, &blocks, &words);
    let whole = fs::read(&path).unwrap();
    let second = read(&path).0.sections[1].offset as usize;
    for cut in [0, 4, 8, 30, second, second + 10, second + 5000, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).unwrap();
        match Reader::open(File::open(&path).unwrap()) {
            Err(_) => assert!(cut < 8),
            Ok(reader) => {
                assert!(!reader.is_complete());
                let mut found = Vec::new();
                for section in &reader.sections {
                    reader.events(section, &mut found).unwrap();
                }
                assert!(words.starts_with(&found));
                assert_eq!(found.is_empty(), cut < second);
            }
        }
    }
}

#[test]
fn no_damage_is_read_as_events() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let blocks = blocks(40);
    let words = words(&blocks, 20_000, 5);
    write(&path, &blocks, &words);
    let whole = fs::read(&path).unwrap();
    let mut numbers = Numbers(3);
    for _ in 0..2000 {
        let mut damaged = whole.clone();
        let at = numbers.below(whole.len() as u64) as usize;
        damaged[at] ^= 1 << numbers.below(8);
        fs::write(&path, &damaged).unwrap();
        let Ok(reader) = Reader::open(File::open(&path).unwrap()) else { continue };
        let (mut found, mut failed) = (Vec::new(), false);
        for section in &reader.sections {
            failed |= reader.events(section, &mut found).is_err();
        }
        assert!(found.is_empty() || found == words, "byte {at}");
        if found.is_empty() {
            assert!(!reader.damaged().is_empty() || !reader.is_complete() || failed, "byte {at}");
        }
    }
}

#[test]
fn an_undefined_block_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let mut writer = Writer::create(File::create(&path).unwrap(), &Facts::new()).unwrap();
    writer.push(&[Event::Block(7).pack()]).unwrap();
    writer.finish().unwrap();
    let reader = Reader::open(File::open(&path).unwrap()).unwrap();
    assert!(reader.events(&reader.sections[0], &mut Vec::new()).is_err());
}
