//! Times at which requests are due: a Poisson process, like that of many independent users.

/// Pseudo-random numbers, the same for the same seed: splitmix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Threads with the same seed draw different numbers.
    pub(super) fn new(seed: u64, thread: usize) -> Self {
        let mut mixed = Random(seed);
        let start = mixed.next() ^ (thread as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Random(start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0, below 1.
    fn part(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Below `limit`.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        ((self.part() * limit as f64) as usize).min(limit.saturating_sub(1))
    }
}

/// Times at which requests are due.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// The next one, from the start on [ns]; with its fraction, so that even a high rate is exact.
    next: f64,
    mean_gap: f64,
}

impl Arrivals {
    pub(super) fn new(per_s: f64, random: &mut Random) -> Self {
        let mut arrivals = Arrivals { next: 0.0, mean_gap: 1e9 / per_s };
        arrivals.advance(random);
        arrivals
    }

    /// When the next one is due, from the start on [ns].
    pub(super) fn next_ns(&self) -> u64 {
        self.next as u64
    }

    pub(super) fn advance(&mut self, random: &mut Random) {
        // Gaps between the events of a Poisson process have an exponential distribution.
        self.next += -(1.0 - random.part()).ln() * self.mean_gap;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(seed: u64, thread: usize, per_s: f64, count: usize) -> Vec<u64> {
        let mut random = Random::new(seed, thread);
        let mut arrivals = Arrivals::new(per_s, &mut random);
        let mut next = || {
            let time = arrivals.next_ns();
            arrivals.advance(&mut random);
            time
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn a_seed_draws_the_same_times_again_and_others_differ() {
        assert_eq!(times(7, 0, 100.0, 50), times(7, 0, 100.0, 50));
        assert_ne!(times(7, 0, 100.0, 50), times(8, 0, 100.0, 50));
        assert_ne!(times(7, 0, 100.0, 50), times(7, 1, 100.0, 50));
    }

    #[test]
    fn the_rate_is_right_and_the_gaps_are_exponential() {
        let times = times(1, 0, 1000.0, 100_000);
        let seconds = *times.last().expect("some") as f64 / 1e9;
        // The standard deviation of the total time is 0.3 %.
        assert!((seconds - 100.0).abs() < 1.5, "{seconds}");
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let longer = gaps.iter().filter(|gap| **gap > 1_000_000).count() as f64 / gaps.len() as f64;
        // exp(-1)
        assert!((longer - 0.3679).abs() < 0.01, "{longer}");
    }

    #[test]
    fn numbers_are_below_their_limit_and_all_come() {
        let mut random = Random::new(3, 0);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[random.below(5)] += 1);
        assert!(seen.iter().all(|count| *count > 120), "{seen:?}");
    }
}
