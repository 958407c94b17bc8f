//! Maps of known ranges: each cell by hand, sums against the tables, and ranges that no file system
//! would write.

use std::{fs, path::Path};

use sysdock_disk::map::{self, Cell, Class, Curve, MapError, Piece, Settings, Space, Window};
use sysdock_table::{Ending, Manifest, Recording, rows};

const BLOCK: u64 = 4096;

/// Inode, logical, physical, length, stored, flags, device; offsets in blocks.
type Row = (i64, i64, Option<i64>, i64, Option<i64>, &'static str, i32);

fn bytes(blocks: i64) -> i64 {
    blocks.saturating_mul(BLOCK as i64)
}

fn file_system(blocks: i64) -> [rows::FileSystems<'static>; 1] {
    [rows::FileSystems {
        fs_type: "ext4".into(),
        source: "/dev/x".into(),
        mount_point: Some("/srv".into()),
        label: Some("".into()),
        uuid: Some("".into()),
        block_bytes: BLOCK as i64,
        size_bytes: bytes(blocks),
        free_bytes: Some(0),
        method: "raw".into(),
        reason: sysdock_table::Facts::default(),
        files: 0,
        unread_files: 0,
        whole: true,
        moment: "one".into(),
    }]
}

/// A recording of a device of `size` blocks, with extents, free ranges and parts (name, start,
/// length).
fn recording(folder: &Path, size: i64, extents: &[Row], free: &[(i64, i64)], parts: &[(&'static str, i64, i64)]) {
    let mut recording = Recording::create(folder, Manifest::new("disk", "events", "calls")).unwrap();
    recording.write_rows(file_system(size)).unwrap();
    recording.write_rows(extents.iter().map(|row| extent(row, None))).unwrap();
    let free = free.iter().map(|(start, length)| rows::FreeExtents {
        physical_bytes: bytes(*start),
        length_bytes: bytes(*length),
        device: 0,
    });
    recording.write_rows(free).unwrap();
    let parts = (0..).zip(parts).map(|(number, (part, start, length))| rows::Layout {
        part: (*part).into(),
        number: Some(number),
        inode: None,
        physical_bytes: bytes(*start),
        length_bytes: bytes(*length),
        device: 0,
    });
    recording.write_rows(parts).unwrap();
    recording.finish(Ending::EndOfInput).unwrap();
}

fn extent(row: &Row, address: Option<i64>) -> rows::Extents<'static> {
    let (inode, logical, physical, length, stored, flags, device) = *row;
    rows::Extents {
        inode,
        logical_bytes: bytes(logical),
        physical_bytes: physical.map(bytes),
        length_bytes: bytes(length),
        stored_bytes: stored.map(bytes),
        flags: flags.into(),
        device,
        address_bytes: address.map(bytes),
    }
}

/// 16 blocks: metadata, a whole file of 2, a fragmented one of 3 + 2, unwritten, compressed, the
/// rest free except for 2 that are in no table.
fn known(folder: &Path) -> Space {
    let extents = [
        (12, 0, Some(1), 2, None, "", 0),
        (13, 0, Some(3), 3, None, "", 0),
        (13, 3, Some(8), 2, None, "", 0),
        (14, 0, Some(6), 1, None, "unwritten", 0),
        (15, 0, Some(7), 4, Some(1), "compressed", 0),
        (16, 0, None, 1, None, "inline", 0),
    ];
    recording(folder, 16, &extents, &[(10, 4)], &[("group", 0, 16), ("super block", 0, 1)]);
    let recorded = map::read(folder, None).unwrap();
    assert_eq!(recorded.facts.nowhere, 1);
    recorded.space
}

const LINE: [Class; 16] = [
    Class::Metadata,
    Class::Unfragmented,
    Class::Unfragmented,
    Class::Contiguous,
    Class::Contiguous,
    Class::Contiguous,
    Class::Unwritten,
    Class::Compressed,
    Class::Break,
    Class::Contiguous,
    Class::Free,
    Class::Free,
    Class::Free,
    Class::Free,
    Class::Unknown,
    Class::Unknown,
];

fn settings(space: &Space, curve: Curve) -> Settings {
    Settings { side: 4, curve, is_worst: false, window: space.whole(), is_search: false }
}

#[test]
fn known_extents_give_known_cells() {
    let folder = tempfile::tempdir().unwrap();
    let space = known(folder.path());
    let mut found = Vec::new();
    space.cells(space.whole(), 2, |_, cell| {
        found.push(Class::ALL.into_iter().find(|class| cell.bytes[*class as usize] == BLOCK).unwrap());
    });
    assert_eq!(found, LINE);
    let plain = [Class::Metadata, Class::Unfragmented, Class::Contiguous, Class::Break, Class::Free];
    for curve in [Curve::Hilbert, Curve::Rows] {
        let picture = map::draw(&space, &settings(&space, curve));
        for (index, class) in LINE.iter().enumerate().filter(|(_, class)| plain.contains(class)) {
            let (x, y) = curve.place(2, index as u64);
            assert_eq!(picture.pixel(x, y), class.paint().colour, "{curve:?} {index}");
        }
    }
}

#[test]
fn a_window_shows_its_own_blocks_larger() {
    let folder = tempfile::tempdir().unwrap();
    let space = known(folder.path());
    let window = Window { from: 8 * BLOCK, length: 4 * BLOCK };
    let picture = map::draw(&space, &Settings { window, ..settings(&space, Curve::Rows) });
    assert_eq!(picture.order, 1);
    for (index, class) in LINE[8..12].iter().enumerate() {
        let (x, y) = (index as u32 % 2 * 2, index as u32 / 2 * 2);
        assert_eq!([picture.pixel(x, y), picture.pixel(x + 1, y + 1)], [class.paint().colour; 2]);
    }
}

#[test]
fn blended_cells_hold_shares_and_the_worst_ones_are_breaks() {
    let folder = tempfile::tempdir().unwrap();
    let space = known(folder.path());
    // Cells of four blocks; the third contains a break, a contiguous block and two free ones.
    let small = Settings { side: 2, ..settings(&space, Curve::Hilbert) };
    let mix = |of: usize| {
        let sum: u32 = LINE[8..12].iter().map(|class| u32::from(class.paint().colour[of])).sum();
        (f64::from(sum) / 4.0).round() as u8
    };
    assert_eq!(map::draw(&space, &small).pixel(1, 1), [mix(0), mix(1), mix(2)]);
    let worst = Settings { is_worst: true, ..small };
    assert_eq!(map::draw(&space, &worst).pixel(1, 1), Class::Break.paint().colour);
}

/// Pseudo-random numbers, the same in each run.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

#[test]
fn shares_sum_to_the_tables_and_each_order_refines_the_one_before() {
    let mut state = 7;
    let (mut pieces, mut end, mut sums) = (Vec::new(), 0, [0; Class::COUNT]);
    while pieces.len() < 3000 {
        let (gap, length) = (random(&mut state, 3) * BLOCK, (1 + random(&mut state, 90)) * BLOCK);
        let class = Class::ALL[random(&mut state, 7) as usize];
        let is_break = class == Class::Contiguous && random(&mut state, 2) == 0;
        pieces.push(Piece { start: end + gap, length, class, is_break, ..Piece::default() });
        let broken = if is_break { BLOCK } else { 0 };
        sums[Class::Break as usize] += broken;
        sums[class as usize] += length - broken;
        sums[Class::Unknown as usize] += gap;
        end += gap + length;
    }
    // The order does not matter.
    pieces.reverse();
    let space = Space::new(end + 12_345, BLOCK, pieces);
    sums[Class::Unknown as usize] += 12_345;
    let mut before: Vec<Cell> = Vec::new();
    for order in (0..=9).rev() {
        let mut cells = Vec::new();
        space.cells(space.whole(), order, |_, cell| cells.push(*cell));
        let mut whole = Cell::default();
        cells.iter().for_each(|cell| whole.include(cell));
        assert_eq!((whole.bytes, whole.total()), (sums, space.size()));
        for (four, one) in before.chunks(4).zip(&cells) {
            let mut sum = Cell::default();
            four.iter().for_each(|cell| sum.include(cell));
            assert_eq!((sum.bytes, sum.lit), (one.bytes, one.lit));
        }
        before = cells;
    }
}

#[test]
fn rows_that_overlap_or_lie_beyond_the_end_are_counted_and_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let far = i64::MAX / BLOCK as i64;
    let extents = [
        (12, 0, Some(2), 4, None, "", 0),
        (13, 0, Some(4), 4, None, "shared", 0),
        (14, 0, Some(-3), 2, None, "", 0),
        (15, 0, Some(5), -9, None, "", 0),
        (16, far, Some(far), far, None, "unwritten+shared", 0),
        (17, 0, Some(14), 8, None, "nonsense+", 0),
        (-1, -1, None, -1, Some(-1), "", 0),
    ];
    recording(folder.path(), 16, &extents, &[(-1, 5), (0, 0)], &[("group", -4, far), ("", far, far)]);
    let recorded = map::read(folder.path(), None).unwrap();
    assert_eq!(recorded.space.claimed_again, 2 * BLOCK);
    assert!(recorded.space.beyond > 6 * BLOCK);
    assert_eq!(recorded.facts.wrong_rows, 4);
    let picture = map::draw(&recorded.space, &settings(&recorded.space, Curve::Hilbert));
    assert_eq!(picture.sum.total(), 16 * BLOCK);
    assert_eq!(picture.sum.bytes[Class::Unfragmented as usize], 8 * BLOCK);
    let _ = map::labels(&recorded.groups, recorded.space.whole(), Curve::Hilbert, picture.order);
    assert!(map::pack(&recorded.space, 1).count <= 1);
}

/// Numbers of devices, and their beginnings on the map [blocks].
fn devices(recorded: &map::Recorded) -> Vec<(i64, u64)> {
    recorded.facts.devices.iter().map(|device| (device.number, device.start / BLOCK)).collect()
}

#[test]
fn devices_are_laid_after_one_another() {
    let folder = tempfile::tempdir().unwrap();
    recording(folder.path(), 16, &[(12, 0, Some(0), 4, None, "", 1), (13, 0, Some(0), 6, None, "", 2)], &[], &[]);
    let recorded = map::read(folder.path(), None).unwrap();
    assert_eq!(devices(&recorded), [(1, 0), (2, 4)]);
    assert_eq!(recorded.space.size(), 10 * BLOCK);
}

#[test]
fn stripes_are_no_breaks_and_devices_have_their_size() {
    let folder = tempfile::tempdir().unwrap();
    // Stripes of two blocks. File 12 is contiguous by its addresses, 13 continues elsewhere, 14 is
    // one compressed extent of two stripes.
    let extents = [
        (12, 0, Some(4), 2, None, "", 1),
        (12, 2, Some(6), 2, None, "", 2),
        (12, 4, Some(6), 2, None, "", 1),
        (13, 0, Some(8), 2, None, "", 2),
        (13, 2, Some(10), 2, None, "", 2),
        (14, 0, Some(12), 9, Some(1), "compressed", 1),
        (14, 9, Some(12), 0, Some(1), "compressed", 2),
    ];
    let addresses = [100, 102, 104, 106, 110, 201, 202].map(Some);
    let mut recording = Recording::create(folder.path(), Manifest::new("disk", "events", "calls")).unwrap();
    recording.write_rows(file_system(50)).unwrap();
    let device = |device, path: Option<&'static str>, size| rows::Devices {
        device,
        path: path.map(Into::into),
        size_bytes: bytes(size),
        allocated_bytes: None,
        free_bytes: None,
        missing: path.is_none(),
    };
    recording.write_rows([device(1, Some("/dev/a"), 20), device(2, Some("/dev/b"), 14), device(5, None, 16)]).unwrap();
    recording.write_rows(extents.iter().zip(addresses).map(|(row, address)| extent(row, address))).unwrap();
    recording.finish(Ending::EndOfInput).unwrap();
    let recorded = map::read(folder.path(), None).unwrap();
    assert_eq!(devices(&recorded), [(1, 0), (2, 20), (5, 34)]);
    assert_eq!(recorded.facts.devices[1].path, "/dev/b");
    assert_eq!(recorded.space.size(), 50 * BLOCK);
    let found =
        recorded.space.pieces().iter().map(|piece| (piece.start / BLOCK, piece.length / BLOCK, piece.class, piece.is_break));
    let expected = [
        (4, 4, Class::Unfragmented, false),
        (12, 1, Class::Compressed, false),
        (26, 2, Class::Unfragmented, false),
        (28, 2, Class::Contiguous, false),
        (30, 2, Class::Contiguous, true),
        (32, 1, Class::Compressed, false),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expected);
    assert_eq!((recorded.facts.wrong_rows, recorded.space.beyond), (0, 0));
}

#[test]
fn a_damaged_or_missing_table_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    known(folder.path());
    let part = folder.path().join("extents/part-0000.parquet");
    let whole = fs::read(&part).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    for content in [&damaged[..], &whole[1..]] {
        fs::write(&part, content).unwrap();
        assert!(matches!(map::read(folder.path(), None), Err(MapError::Damaged(..))));
    }
    fs::remove_file(&part).unwrap();
    assert!(matches!(map::read(folder.path(), None), Err(MapError::Io(..))));
    let other = tempfile::tempdir().unwrap();
    assert!(matches!(map::read(other.path(), None), Err(MapError::Io(..))));
    Recording::create(other.path(), Manifest::new("strace", "events", "calls")).unwrap().finish(Ending::EndOfInput).unwrap();
    assert!(matches!(map::read(other.path(), None), Err(MapError::NoTable(..))));
}

#[test]
fn what_is_packed_is_the_longest() {
    let piece = |at: u64| Piece { start: at * 100 * BLOCK, length: (at + 1) * BLOCK, ..Piece::default() };
    let space = Space::new(2000 * BLOCK, BLOCK, (0..10).map(piece).collect());
    let packed = map::pack(&space, 4);
    assert_eq!((packed.count, packed.unit), (4, BLOCK));
    assert_eq!(packed.left_out, (6, 21 * BLOCK, 7 * BLOCK));
    assert_eq!(map::pack(&space, 10).left_out, (0, 0, 0));
}
