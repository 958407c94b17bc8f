//! Classes of latencies, whose width grows with the latency: 64 for each power of two, so none is
//! wider than 1.6 %.

use crate::LatencyClass;

/// Number of classes for a power of two.
const PARTS: u64 = 64;
const PART_BITS: u32 = PARTS.trailing_zeros();
/// Latencies up to 2^41 ns (37 minutes); longer ones are in the last class.
pub(crate) const CLASSES: usize = ((41 - PART_BITS as usize) + 1) * PARTS as usize;

/// The class of a latency.
#[inline]
pub(crate) fn class_of(ns: u64) -> usize {
    let exponent = (ns | 1).ilog2();
    let class = match exponent < PART_BITS {
        true => ns,
        false => {
            let shift = exponent - PART_BITS;
            u64::from(shift + 1) * PARTS + ((ns >> shift) - PARTS)
        }
    };
    (class as usize).min(CLASSES - 1)
}

/// Shortest and longest latency of a class.
fn limits(class: usize) -> (u64, u64) {
    let (power, part) = (class as u64 / PARTS, class as u64 % PARTS);
    match power {
        0 => (part, part),
        _ => {
            let shift = power - 1;
            ((PARTS + part) << shift, ((PARTS + part + 1) << shift) - 1)
        }
    }
}

/// The classes with operations, from counts by class.
pub(crate) fn classes(counts: &[u64]) -> Vec<LatencyClass> {
    let occurred = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let class = |(class, count): (usize, &u64)| {
        let (low, high) = limits(class);
        LatencyClass { low_ns: low as i64, high_ns: high as i64, operations: *count as i64 }
    };
    occurred.map(class).collect()
}

/// The latency that this fraction of the operations does not exceed: the longest of a class. `None`
/// without operations.
pub(crate) fn quantile(classes: &[LatencyClass], part: f64) -> Option<i64> {
    // Counts of a log may add up to more than an integer can contain.
    let total: f64 = classes.iter().map(|class| class.operations as f64).sum();
    let wanted = (total * part).ceil().max(1.0);
    let mut seen = 0.0;
    classes
        .iter()
        .find(|class| {
            seen += class.operations as f64;
            seen >= wanted
        })
        .map(|class| class.high_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_within_the_limits_of_its_class() {
        let mut ns = 0_u64;
        while ns < 1 << 41 {
            let (low, high) = limits(class_of(ns));
            assert!(low <= ns && ns <= high, "{ns}: {low} to {high}");
            assert!(high - low <= low / PARTS, "{ns}: {low} to {high}");
            ns = ns + 1 + ns / 97;
        }
    }

    #[test]
    fn classes_follow_each_other_without_gaps() {
        for class in 1..CLASSES {
            assert_eq!(limits(class - 1).1 + 1, limits(class).0, "{class}");
        }
        assert_eq!(class_of(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_latencies() {
        let mut counts = vec![0_u64; CLASSES];
        let latencies: Vec<u64> = (1..=1000).map(|n| n * n * 37).collect();
        latencies.iter().for_each(|ns| counts[class_of(*ns)] += 1);
        let classes = classes(&counts);
        for (part, exact) in [(0.5, latencies[499]), (0.99, latencies[989]), (1.0, latencies[999])] {
            let found = quantile(&classes, part).unwrap() as u64;
            assert!(found >= exact && found - exact <= exact / PARTS, "{part}: {found} for {exact}");
        }
        assert_eq!(quantile(&[], 0.5), None);
    }
}
