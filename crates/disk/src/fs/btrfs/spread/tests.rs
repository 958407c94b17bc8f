//! Compares the arithmetic of ranges with blocks one by one, also for chunks that no file system
//! would write.

use super::*;
use crate::fs::btrfs::{
    chunks::Chunks,
    search::{Item, kind},
};

const STRIPE: u64 = 1 << 16;
const ADDRESS: u64 = 1 << 30;
const RAID0: u64 = 1 << 3;
const RAID10: u64 = 1 << 6;
const RAID5: u64 = 1 << 7;
const RAID6: u64 = 1 << 8;

fn item(kind: u64, length: u64, stripe: u64, slots: u16, sub_stripes: u16) -> Vec<u8> {
    let mut data = vec![0; 48];
    data[0..8].copy_from_slice(&length.to_le_bytes());
    data[16..24].copy_from_slice(&stripe.to_le_bytes());
    data[24..32].copy_from_slice(&kind.to_le_bytes());
    data[44..46].copy_from_slice(&slots.to_le_bytes());
    data[46..48].copy_from_slice(&sub_stripes.to_le_bytes());
    for slot in 0..u64::from(slots) {
        data.extend((slot + 1).to_le_bytes());
        data.extend(((slot + 1) << 24).to_le_bytes());
        data.extend([0; 16]);
    }
    data
}

fn read(data: &[u8], address: u64) -> Result<Chunk, Fact> {
    Chunk::of(&Item { object: 256, kind: kind::CHUNK, offset: address, data })
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Device, offset and length.
type Span = (u32, u64, u64);

/// All ranges of a chunk for what is in use, and the free ones.
fn everything(chunk: &Chunk, used: &[Used]) -> (Vec<Span>, Vec<Span>) {
    let (mut taken, mut free) = (Vec::new(), Vec::new());
    let mut take = |device, place, length| {
        taken.push((device, place, length));
        Ok::<(), ()>(())
    };
    for piece in used {
        chunk.spans((piece.address, piece.length), 0, &mut take).unwrap();
    }
    if chunk.has_parity() {
        chunk.parity(used, &mut take).unwrap();
        chunk.free_with_parity(used, |device, place, length| free.push((device, place, length)));
    }
    (taken, free)
}

#[test]
fn pieces_and_spans_are_the_same_blocks_and_cover_the_slots() {
    let mut state = 7;
    for (kind, slots, sub) in
        [(RAID0, 2, 1), (RAID0, 5, 1), (RAID10, 6, 2), (RAID5, 2, 1), (RAID5, 3, 1), (RAID5, 5, 1), (RAID6, 3, 1), (RAID6, 6, 1)]
    {
        let columns = Spread::of(kind, slots, sub, STRIPE).unwrap().columns;
        let chunk = read(&item(kind, 12 * columns * STRIPE, STRIPE, slots as u16, sub as u16), ADDRESS).unwrap();
        let mut used = Vec::new();
        let mut at = ADDRESS;
        while used.len() < 40 {
            at += random(&mut state) % 30 * 4096;
            let length = (1 + random(&mut state) % 60) * 4096;
            if at + length > chunk.end() {
                break;
            }
            used.push(Used { address: at, length, is_metadata: false, is_shared: false });
            at += length;
        }
        let blocks = |pieces: &[Span]| {
            let each = pieces
                .iter()
                .flat_map(|(device, place, length)| (*place..place + length).step_by(4096).map(|block| (*device, block)));
            let mut all: Vec<(u32, u64)> = each.collect();
            all.sort_unstable();
            all
        };
        let (taken, free) = everything(&chunk, &used);
        let mut by_pieces = Vec::new();
        for piece in &used {
            let mut next = piece.address;
            for copy in 0..chunk.spread.copies {
                next = piece.address;
                for place in chunk.pieces(piece.address, piece.length, copy) {
                    assert_eq!(place.address, next);
                    next += place.length;
                    by_pieces.push((place.device, place.physical, place.length));
                }
            }
            assert_eq!(next, piece.address + piece.length);
        }
        if chunk.has_parity() {
            // Data, parity and free space together are each block of each slot, once.
            let all: Vec<_> = chunk.slots.iter().map(|(device, place)| (*device, *place, chunk.slot_bytes())).collect();
            assert_eq!(blocks(&[taken, free].concat()), blocks(&all));
        } else {
            assert_eq!(blocks(&taken), blocks(&by_pieces));
        }
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let good = item(RAID5, 1 << 30, STRIPE, 3, 1);
    assert!(read(&good, ADDRESS).is_ok());
    for bad in [
        item(RAID5, 1 << 30, STRIPE, 0, 1),
        item(RAID5, 1 << 30, STRIPE, 1, 1),
        item(RAID6, 1 << 30, STRIPE, 2, 1),
        item(RAID5, 1 << 30, 0, 3, 1),
        item(RAID5, 1 << 30, 1, 3, 1),
        item(RAID5, 1 << 30, u64::MAX, 3, 1),
        item(RAID5, 0, STRIPE, 3, 1),
        item(RAID5, u64::MAX, STRIPE, 3, 1),
        item(RAID5, (1 << 30) + 4096, STRIPE, 3, 1),
        item(RAID10, 1 << 30, STRIPE, 4, 0),
        item(RAID10, 1 << 30, STRIPE, 5, 2),
        item(RAID0 | RAID5, 1 << 30, STRIPE, 3, 1),
        item(1 << 40, 1 << 30, STRIPE, 3, 1),
        good[..100].to_vec(),
        Vec::new(),
    ] {
        assert!(read(&bad, ADDRESS).is_err());
    }
    assert!(read(&good, u64::MAX - 5).is_err());
}

#[test]
fn random_items_are_refused_or_do_no_harm() {
    let mut state = 3;
    let mut taken = 0;
    for _ in 0..20_000 {
        let mut data =
            item(1 << (random(&mut state) % 12), 1 << (random(&mut state) % 64), STRIPE, 1 + (random(&mut state) % 6) as u16, 2);
        for _ in 0..random(&mut state) % 4 {
            let at = random(&mut state) as usize % data.len();
            data[at] = random(&mut state) as u8;
        }
        let address = if random(&mut state).is_multiple_of(8) { u64::MAX >> (random(&mut state) % 64) } else { ADDRESS };
        let Ok(chunk) = read(&data, address) else { continue };
        taken += 1;
        // Some extents in the chunk, one outside, one longer than the chunk.
        let at = |part: u64| chunk.address + chunk.length / 8 * part;
        let lengths = [4096, 1 << 20, u64::MAX];
        let used: Vec<Used> = (0..3_usize)
            .map(|number| Used { address: at(3 * number as u64), length: lengths[number], is_metadata: false, is_shared: false })
            .filter(|piece| chunk.length < 1 << 40 && piece.address < chunk.end())
            .collect();
        if chunk.length < 1 << 32 {
            let _ = everything(&chunk, &used);
        }
        let first = chunk.pieces(chunk.address, u64::MAX, 0).take(5).count();
        assert!(first > 0);
    }
    assert!(taken > 1000, "{taken}");
}

#[test]
fn a_chunk_that_begins_in_another_is_refused() {
    let data = item(0, STRIPE, STRIPE, 1, 0);
    let mut chunks = Chunks::default();
    for (address, is_right) in [(ADDRESS, true), (ADDRESS + STRIPE, true), (ADDRESS + STRIPE + 1, false), (0, false)] {
        assert_eq!(chunks.add(read(&data, address).unwrap()).is_ok(), is_right, "{address}");
    }
    assert_eq!(chunks.all.len(), 2);
}
