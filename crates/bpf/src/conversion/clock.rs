//! From `CLOCK_MONOTONIC` to nanoseconds since the epoch.

use sysdock_table::{Facts, facts::clock as facts};

/// If all pairs differ by less, the first one is enough.
const AGREE_NS: i64 = 1_000_000;

/// Readings of both clocks, ordered by `CLOCK_MONOTONIC`.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// `CLOCK_MONOTONIC`, and the offset to `CLOCK_REALTIME` [ns].
    pairs: Vec<(u64, i64)>,
    /// The offset of the first pair, if one is enough.
    single: Option<i64>,
    spread_ns: i64,
}

impl Clock {
    /// From pairs (monotonic, real).
    pub(crate) fn new(pairs: impl Iterator<Item = (u64, i64)>) -> Self {
        let mut pairs: Vec<(u64, i64)> =
            pairs.map(|(monotonic, real)| (monotonic, real.wrapping_sub(monotonic.cast_signed()))).collect();
        // The note of the start comes first, and has the smallest time.
        pairs.sort_by_key(|(monotonic, _)| *monotonic);
        let least = pairs.iter().map(|(_, offset)| *offset).min().unwrap_or(0);
        let most = pairs.iter().map(|(_, offset)| *offset).max().unwrap_or(0);
        let spread_ns = most.saturating_sub(least);
        let first = pairs.first().map_or(0, |(_, offset)| *offset);
        Clock { pairs, single: (spread_ns < AGREE_NS).then_some(first), spread_ns }
    }

    /// Whether there is any pair.
    pub(crate) fn is_known(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// When the first pair was taken, `CLOCK_MONOTONIC` [ns].
    pub(crate) fn first_ns(&self) -> u64 {
        self.pairs.first().map_or(0, |(monotonic, _)| *monotonic)
    }

    /// When the last pair was taken.
    pub(crate) fn last_ns(&self) -> u64 {
        self.pairs.last().map_or(0, |(monotonic, _)| *monotonic)
    }

    /// Nanoseconds since the epoch; without any pair, since the machine was started.
    #[inline]
    pub(crate) fn epoch_ns(&self, monotonic_ns: u64) -> i64 {
        monotonic_ns.cast_signed().wrapping_add(self.single.unwrap_or_else(|| self.offset(monotonic_ns)))
    }

    /// Offset at a time: interpolated between two pairs, outside that of the nearest.
    fn offset(&self, at: u64) -> i64 {
        let next = self.pairs.partition_point(|(monotonic, _)| *monotonic <= at);
        let (Some(before), Some(after)) = (next.checked_sub(1).map(|index| self.pairs[index]), self.pairs.get(next)) else {
            return self.pairs.get(next).or(self.pairs.last()).map_or(0, |(_, offset)| *offset);
        };
        let part = i128::from(at - before.0) * (i128::from(after.1) - i128::from(before.1)) / i128::from(after.0 - before.0);
        before.1.wrapping_add(part as i64)
    }

    /// The accuracy of the times.
    pub(crate) fn note(&self) -> Facts {
        match (self.pairs.len(), self.single) {
            (0, _) => facts::from_boot().into(),
            (1, _) => facts::monotonic().into(),
            (count, Some(_)) => [facts::monotonic(), facts::comparisons_agree(count, self.spread_ns)].into_iter().collect(),
            (count, None) => facts::monotonic_interpolated(count, self.spread_ns).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_agree_have_one_offset() {
        let clock = Clock::new([(1000, 1_000_000_000), (2000, 1_000_001_900)].into_iter());
        assert_eq!(clock.epoch_ns(1500), 1_000_000_500);
        assert_eq!(clock.note().codes(), ["clock/monotonic", "clock/comparisons_agree"]);
        assert_eq!(Clock::new(std::iter::empty()).epoch_ns(7), 7);
    }

    #[test]
    fn a_clock_that_was_set_is_interpolated() {
        let pairs = [(2_000_000_000, 52_000_000_000), (1_000_000_000, 11_000_000_000), (3_000_000_000, 53_000_000_000)];
        let clock = Clock::new(pairs.into_iter());
        assert_eq!(clock.epoch_ns(0), 10_000_000_000);
        assert_eq!(clock.epoch_ns(1_000_000_000), 11_000_000_000);
        assert_eq!(clock.epoch_ns(1_500_000_000), 31_500_000_000);
        assert_eq!(clock.epoch_ns(4_000_000_000), 54_000_000_000);
        assert_eq!(clock.first_ns(), 1_000_000_000);
    }

    #[test]
    fn no_time_is_too_large() {
        let clock = Clock::new([(0, i64::MIN), (u64::MAX, i64::MAX)].into_iter());
        for at in [0, 1, u64::MAX / 2, u64::MAX] {
            clock.epoch_ns(at);
        }
    }
}
