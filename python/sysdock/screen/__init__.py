"""What a terminal shows of answers: the first screen, `info`, check-ups, comparisons, probes, experiments."""
