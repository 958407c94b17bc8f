//! The dictionary of a column chunk: a code for each distinct value.

/// Distinct values in order of appearance. Small values (ids, descriptors, most lengths) index a
/// table; the others are found by open addressing. The tables contain only codes, to stay small in
/// cache.
pub(crate) struct Dictionary {
    small: Vec<u16>,
    slots: Vec<u16>,
    /// Number of values in `slots`.
    large: usize,
    pub(crate) values: Vec<i64>,
}

impl Dictionary {
    const EMPTY: u16 = u16::MAX;

    /// Values from this one on count as large.
    const SMALL: usize = 1 << 16;

    pub(crate) fn new() -> Self {
        Dictionary { small: Vec::new(), slots: vec![Self::EMPTY; 1 << 8], large: 0, values: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.small.fill(Self::EMPTY);
        self.slots.truncate(1 << 12);
        self.slots.fill(Self::EMPTY);
        self.large = 0;
        self.values.clear();
    }

    pub(crate) fn encode(&mut self, values: &[i64], codes: &mut Vec<u16>) {
        codes.extend(values.iter().map(|value| self.code(*value)));
    }

    #[inline]
    pub(crate) fn code(&mut self, value: i64) -> u16 {
        // A negative number becomes a huge index.
        match self.small.get(value as usize) {
            Some(&code) if code != Self::EMPTY => code,
            _ if value.cast_unsigned() < Self::SMALL as u64 => self.insert_small(value as usize),
            _ => self.large_code(value),
        }
    }

    #[cold]
    fn insert_small(&mut self, value: usize) -> u16 {
        if value >= self.small.len() {
            self.small.resize((value + 1).next_power_of_two(), Self::EMPTY);
        }
        let code = self.insert(value as i64);
        self.small[value] = code;
        code
    }

    #[inline]
    fn large_code(&mut self, value: i64) -> u16 {
        let mut at = self.place(value);
        loop {
            let code = self.slots[at];
            if code == Self::EMPTY {
                return self.insert_large(value, at);
            }
            if self.values[usize::from(code)] == value {
                return code;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn place(&self, value: i64) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all bits of the value.
        let product = value.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    #[cold]
    fn insert_large(&mut self, value: i64, at: usize) -> u16 {
        let code = self.insert(value);
        self.slots[at] = code;
        self.large += 1;
        if self.large * 2 > self.slots.len() {
            self.grow();
        }
        code
    }

    fn insert(&mut self, value: i64) -> u16 {
        // A block may exceed the limit by its own length, which still fits.
        let code = u16::try_from(self.values.len()).expect("limited by the caller");
        self.values.push(value);
        code
    }

    fn grow(&mut self) {
        self.slots = vec![Self::EMPTY; self.slots.len() * 2];
        let is_large = |value: i64| value.cast_unsigned() >= Self::SMALL as u64;
        for (number, code) in (0..self.values.len()).zip(0u16..).filter(|(number, _)| is_large(self.values[*number])) {
            let mut at = self.place(self.values[number]);
            while self.slots[at] != Self::EMPTY {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = code;
        }
    }
}
