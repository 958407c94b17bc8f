//! Measures how fast a map of a thousand million blocks is drawn: `cargo run --release -p
//! sysdock-disk --example map_speed`.
#![allow(clippy::print_stdout)]

use std::{hint::black_box, time::Instant};

use sysdock_disk::map::{Class, Curve, Piece, Settings, Space, Window, draw};

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 1_000_000_000;
const EXTENTS: u64 = 30_000_000;
const ROUNDS: usize = 5;

/// Pseudo-random numbers, the same in each run.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// Adjacent extents of 1 to 64 blocks, of all classes.
fn pieces() -> Vec<Piece> {
    let (mut state, mut end) = (1, 0);
    let mut piece = |number: u64| {
        let length = (1 + random(&mut state, 2 * BLOCKS / EXTENTS - 2)) * BLOCK;
        let class = Class::ALL[random(&mut state, 7) as usize];
        let is_break = class == Class::Contiguous && random(&mut state, 2) == 0;
        let found = Piece { start: end, length, owner: number as u32 / 4, class, is_break, is_lit: false };
        end += length;
        found
    };
    (0..EXTENTS).map(&mut piece).collect()
}

fn measured(name: &str, mut work: impl FnMut()) {
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        work();
        times.push(started.elapsed().as_secs_f64());
    }
    times.sort_unstable_by(f64::total_cmp);
    println!("{name}: median {:.4} s, least {:.4} s", times[ROUNDS / 2], times[0]);
}

fn main() {
    let pieces = pieces();
    let size = pieces.last().map_or(0, |piece| piece.start + piece.length);
    println!("{EXTENTS} extents, {} blocks", size / BLOCK);
    let mut shuffled = pieces.clone();
    let mut state = 5;
    (1..shuffled.len()).for_each(|at| shuffled.swap(at, random(&mut state, at as u64) as usize));
    let started = Instant::now();
    black_box(Space::new(size, BLOCK, shuffled));
    println!("sorting shuffled extents, once: {:.2} s", started.elapsed().as_secs_f64());
    let space = Space::new(size, BLOCK, pieces);
    for side in [512, 1024, 2048, 4096] {
        let whole = Settings { side, curve: Curve::Hilbert, is_worst: false, window: space.whole(), is_search: false };
        measured(&format!("{side} x {side} with PNG"), || {
            let mut png = Vec::new();
            draw(&space, &whole).write_png(&mut png).expect("memory takes everything");
            black_box(png);
        });
    }
    for part in [64, 4096] {
        let window = Window { from: size / 3, length: size / part };
        let zoomed = Settings { side: 1024, curve: Curve::Hilbert, is_worst: false, window, is_search: false };
        measured(&format!("1024 x 1024 of 1/{part} of the device, without PNG"), || {
            black_box(draw(&space, &zoomed));
        });
    }
}
