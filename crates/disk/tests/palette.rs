//! Tests that the colours of a map are distinguishable for everyone: CAM02-UCS over the colour
//! vision deficiencies (Machado, Oliveira and Fernandes 2009, full severity), and lightness alone.

// The printed numbers are in docs/explain/measurements.md.
#![allow(clippy::print_stdout)]

use sysdock_disk::map::{Class, Pattern};

type Colour = [f64; 3];

const MAIN: [Class; 5] = [Class::Free, Class::Unfragmented, Class::Contiguous, Class::Break, Class::Metadata];

/// None, protanopia, deuteranopia, tritanopia; on linear values.
const VISIONS: [[Colour; 3]; 4] = [
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
];
const XYZ: [Colour; 3] = [[41.24564, 35.75761, 18.04375], [21.26729, 71.51522, 7.2175], [1.93339, 11.9192, 95.03041]];
const CAT02: [Colour; 3] = [[0.7328, 0.4296, -0.1624], [-0.7036, 1.6975, 0.0061], [0.0030, 0.0136, 0.9834]];
const CAT02_INVERSE: [Colour; 3] =
    [[1.096124, -0.278869, 0.182745], [0.454369, 0.473533, 0.072098], [-0.009628, -0.005698, 1.015326]];
const HUNT_POINTER_ESTEVEZ: [Colour; 3] = [[0.38971, 0.68898, -0.07868], [-0.22981, 1.18340, 0.04641], [0.0, 0.0, 1.0]];

fn times(matrix: &[Colour; 3], of: Colour) -> Colour {
    matrix.map(|row| row.iter().zip(of).map(|(a, b)| a * b).sum())
}

fn linear(colour: [u8; 3]) -> Colour {
    colour.map(|value| {
        let value = f64::from(value) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

/// CIECAM02 under the viewing conditions of sRGB (64 lux, grey surround of 20 %), made uniform
/// (Luo, Cui and Li 2006).
fn cam02_ucs(linear: Colour) -> Colour {
    let adapting = 64.0 / std::f64::consts::PI / 5.0;
    let k: f64 = 1.0 / (5.0 * adapting + 1.0);
    let level = 0.2 * k.powi(4) * 5.0 * adapting + 0.1 * (1.0 - k.powi(4)).powi(2) * (5.0 * adapting).cbrt();
    let degree = 1.0 - (-(adapting + 42.0) / 92.0_f64).exp() / 3.6;
    let white = times(&CAT02, times(&XYZ, [1.0; 3]));
    let induction = 0.725 * (1.0 / 0.2_f64).powf(0.2);
    let response = |linear: Colour| {
        let mut cones = times(&CAT02, times(&XYZ, linear));
        (0..3).for_each(|of| cones[of] *= degree * 100.0 / white[of] + 1.0 - degree);
        times(&HUNT_POINTER_ESTEVEZ, times(&CAT02_INVERSE, cones)).map(|value| {
            let power = (level * value.abs() / 100.0).powf(0.42);
            value.signum() * 400.0 * power / (27.13 + power) + 0.1
        })
    };
    let achromatic = |[r, g, b]: Colour| (2.0 * r + g + b / 20.0 - 0.305) * induction;
    let [r, g, b] = response(linear);
    let (red_green, yellow_blue) = (r - 12.0 * g / 11.0 + b / 11.0, (r + g - 2.0 * b) / 9.0);
    let hue = yellow_blue.atan2(red_green);
    let ratio = (achromatic([r, g, b]) / achromatic(response([1.0; 3]))).max(0.0);
    let lightness = 100.0 * ratio.powf(0.69 * (1.48 + 0.2_f64.sqrt()));
    let eccentricity = 0.25 * ((hue + 2.0).cos() + 3.8);
    let t = 50_000.0 / 13.0 * induction * eccentricity * red_green.hypot(yellow_blue) / (r + g + 1.05 * b);
    let chroma = t.powf(0.9) * (lightness / 100.0).sqrt() * (1.64 - 0.29_f64.powf(0.2)).powf(0.73);
    let colourfulness = (1.0 + 0.0228 * chroma * level.powf(0.25)).ln() / 0.0228;
    [1.7 * lightness / (1.0 + 0.007 * lightness), colourfulness * hue.cos(), colourfulness * hue.sin()]
}

fn difference(a: [u8; 3], b: [u8; 3], vision: &[Colour; 3]) -> f64 {
    let seen = |colour| cam02_ucs(times(vision, linear(colour)).map(|value| value.clamp(0.0, 1.0)));
    let (a, b) = (seen(a), seen(b));
    (0..3).map(|of| (a[of] - b[of]).powi(2)).sum::<f64>().sqrt()
}

/// CIE L*.
fn lightness(colour: [u8; 3]) -> f64 {
    let luminance = times(&XYZ, linear(colour))[1] / 100.0;
    if luminance > 0.008_856 { 116.0 * luminance.cbrt() - 16.0 } else { 903.3 * luminance }
}

fn least(of: impl Fn([u8; 3], [u8; 3]) -> f64) -> f64 {
    let colours = MAIN.map(|class| class.paint().colour);
    let pairs = (0..5).flat_map(|a| (0..a).map(move |b| (a, b)));
    pairs.map(|(a, b)| of(colours[a], colours[b])).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_main_classes_are_distinguishable_for_everyone_and_in_grey() {
    let seen = VISIONS.map(|vision| least(|a, b| difference(a, b, &vision)));
    assert!(seen.iter().all(|difference| *difference >= 25.0), "{seen:.1?}");
    let grey = least(|a, b| (lightness(a) - lightness(b)).abs());
    assert!(grey >= 12.0, "{grey:.1}");
    println!("smallest difference by vision {seen:.1?}, in grey {grey:.1}");
}

#[test]
fn patterns_differ_and_are_seen_in_grey() {
    let patterned: Vec<_> = Class::ALL.into_iter().map(Class::paint).filter(|paint| paint.pattern != Pattern::Plain).collect();
    assert_eq!(patterned.len(), 3);
    for (place, paint) in patterned.iter().enumerate() {
        assert!((lightness(paint.colour) - lightness(paint.second)).abs() >= 12.0);
        assert!(patterned[..place].iter().all(|other| other.pattern != paint.pattern));
    }
}

/// White is 100 in lightness and black 0, and both are grey.
#[test]
fn black_and_white_are_a_hundred_apart() {
    let apart = difference([0; 3], [255; 3], &VISIONS[0]);
    assert!((apart - 100.0).abs() < 0.5, "{apart}");
}
