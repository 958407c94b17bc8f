//! Sums of calls by object, name and error (`object_use`), added up while the calls are in a core's
//! cache.
//!
//! Most questions about a recording begin with these sums, and computing them from ten million
//! calls takes half a second each time.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use sysdock_table::{
    EncodedGroup, GroupEncoder, ROWS_PER_BLOCK,
    rows::{ObjectUseColumns, ObjectUseRow},
};

use crate::call_rows::{CallRow, NONE, Via, id, known};

/// Number of sums held in memory: 20 MB at most. Above it they are written, and one key may get
/// several rows.
const MOST_HELD: usize = 1 << 17;
/// With fewer calls per sum, storing the sums is not worth it: reading the calls is about as fast.
const LEAST_CALLS: u64 = 4;

/// The key of a sum: object, name and error, then class, flags and way of issue. It is packed,
/// because keys are compared for each call; a negative number represents NULL.
type Key = (u64, u64);

fn key_of(row: &CallRow) -> Key {
    let errno = u64::from(row.errno.max(-1).cast_unsigned());
    let open_flags = u64::from(row.open_flags.max(-1).cast_unsigned());
    let object = u64::from(row.object.max(-1).cast_unsigned());
    (object << 32 | u64::from(row.call) << 16 | errno, open_flags << 16 | u64::from(row.class) << 8 | row.via as u64)
}

/// The hash table takes places from the lower bits, and a tag from the upper ones. Objects are
/// numbered in order of appearance, and programs often use files in the same order again: for each
/// kind of call, objects with adjacent numbers get adjacent places, so that they are in cache.
fn hash(key: &Key) -> u64 {
    const PLACE: u64 = (1 << 48) - 1;
    let (object, rest) = (key.0 >> 32, (key.0 & u64::from(u32::MAX), key.1));
    let place = FxBuildHasher.hash_one(rest).wrapping_add(object << 3);
    (place & PLACE) | (FxBuildHasher.hash_one(key) & !PLACE)
}

/// The sum of the calls of one key.
#[derive(Clone, Debug)]
struct Sum {
    calls: i64,
    returned: i64,
    durations: Values,
    sizes: Values,
    first_ns: i64,
    last_ns: i64,
    first_task_id: i32,
    last_task_id: i32,
}

/// Number, sum, least and greatest of the known values.
#[derive(Clone, Copy, Debug)]
struct Values {
    count: i64,
    sum: i64,
    least: i64,
    most: i64,
}

impl Values {
    const NOTHING: Values = Values { count: 0, sum: 0, least: i64::MAX, most: i64::MIN };

    /// Add a value; false if the sum is too large for its column.
    #[must_use]
    fn add(&mut self, value: i64) -> bool {
        if value == NONE {
            return true;
        }
        self.count += 1;
        self.least = self.least.min(value);
        self.most = self.most.max(value);
        let (sum, too_large) = self.sum.overflowing_add(value);
        self.sum = sum;
        !too_large
    }

    fn sum(&self) -> Option<i64> {
        (self.count > 0).then_some(self.sum)
    }

    fn least(&self) -> Option<i64> {
        (self.count > 0).then_some(self.least)
    }

    fn most(&self) -> Option<i64> {
        (self.count > 0).then_some(self.most)
    }
}

impl Sum {
    const NOTHING: Sum = Sum {
        calls: 0,
        returned: 0,
        durations: Values::NOTHING,
        sizes: Values::NOTHING,
        first_ns: i64::MAX,
        last_ns: i64::MIN,
        first_task_id: i32::MAX,
        last_task_id: i32::MIN,
    };

    /// Add a call; false if a sum is too large for its column.
    #[must_use]
    fn add(&mut self, row: &CallRow) -> bool {
        let took_ns = known(row.dur_ns).unwrap_or(0);
        let (end_ns, too_late) = row.ts_ns.overflowing_add(took_ns);
        let task_id = row.task.cast_signed();
        self.calls += 1;
        self.returned += i64::from(row.transferred != NONE || row.result != NONE);
        self.first_ns = self.first_ns.min(row.ts_ns);
        self.last_ns = self.last_ns.max(end_ns);
        self.first_task_id = self.first_task_id.min(task_id);
        self.last_task_id = self.last_task_id.max(task_id);
        !too_late & self.durations.add(row.dur_ns) & self.sizes.add(row.transferred)
    }
}

/// The sums of the calls so far that are not written yet.
#[derive(Default)]
pub(crate) struct ObjectUse {
    /// In order of first appearance.
    sums: Vec<Sum>,
    /// The key of each sum. Stored apart from the sums: a search reads only keys, and more of them
    /// fit into a cache.
    keys: Vec<Key>,
    /// Indices into `sums`, by the hash of the key.
    places: HashTable<u32>,
    /// Number of sums that were written, and of all calls.
    written: u64,
    calls: u64,
    /// The sums are not worth storing, or too large for their columns. Rows that were written stay;
    /// readers see that they are incomplete.
    given_up: bool,
}

impl ObjectUse {
    /// Add a block of rows.
    pub(crate) fn add(&mut self, rows: &[CallRow]) {
        if self.given_up {
            return;
        }
        self.calls += rows.len() as u64;
        // Calls on one object often follow each other, so the last sum is tried first.
        let mut place = usize::MAX;
        for row in rows {
            let key = key_of(row);
            if self.keys.get(place) != Some(&key) {
                place = self.place(key);
            }
            if !self.sums[place].add(row) {
                return self.give_up();
            }
        }
        let entries = self.written + self.sums.len() as u64;
        if self.is_full() && self.calls / entries < LEAST_CALLS {
            self.give_up();
        }
    }

    fn place(&mut self, key: Key) -> usize {
        let ObjectUse { sums, keys, places, .. } = self;
        let entry = places.entry(hash(&key), |place| keys[*place as usize] == key, |place| hash(&keys[*place as usize]));
        let next = u32::try_from(keys.len()).expect("written long before");
        let place = *entry.or_insert(next).get();
        if place == next {
            keys.push(key);
            sums.push(Sum::NOTHING);
        }
        place as usize
    }

    fn give_up(&mut self) {
        *self = ObjectUse { given_up: true, ..ObjectUse::default() };
    }

    /// Whether there are so many sums that they should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.sums.len() >= MOST_HELD
    }

    /// Take the sums so far, for [`ObjectUse::encode`].
    pub(crate) fn take(&mut self) -> Vec<Row> {
        self.written += self.sums.len() as u64;
        self.places.clear();
        let keys = std::mem::take(&mut self.keys);
        keys.into_iter().zip(std::mem::take(&mut self.sums)).map(|(key, sum)| Row { key, sum }).collect()
    }
}

/// A row of `object_use`.
pub(crate) struct Row {
    key: Key,
    sum: Sum,
}

/// A row group of sums; `None` if there are none.
pub(crate) fn encode<W>(sums: &[Row], words: &W) -> Option<EncodedGroup>
where
    ObjectUseColumns: sysdock_table::rows::BlockTexts<W>,
{
    let mut groups = GroupEncoder::<ObjectUseColumns>::default();
    sums.chunks(ROWS_PER_BLOCK).for_each(|block| groups.block(&block.iter()));
    (!sums.is_empty()).then(|| groups.finish(words))
}

impl ObjectUseRow for Row {
    fn path_id(&self) -> Option<i32> {
        id(((self.key.0 >> 32) as u32).cast_signed())
    }

    fn call(&self) -> usize {
        usize::from((self.key.0 >> 16) as u16)
    }

    fn class(&self) -> usize {
        usize::from((self.key.1 >> 8) as u8)
    }

    fn errno(&self) -> Option<usize> {
        usize::try_from((self.key.0 as u16).cast_signed()).ok()
    }

    fn via(&self) -> Option<usize> {
        Some(usize::from(self.key.1 as u8)).filter(|via| *via != Via::Call as usize)
    }

    fn open_flags(&self) -> Option<usize> {
        usize::try_from(((self.key.1 >> 16) as u16).cast_signed()).ok()
    }

    fn calls(&self) -> i64 {
        self.sum.calls
    }

    fn returned(&self) -> i64 {
        self.sum.returned
    }

    fn timed_calls(&self) -> i64 {
        self.sum.durations.count
    }

    fn time_ns(&self) -> Option<i64> {
        self.sum.durations.sum()
    }

    fn shortest_ns(&self) -> Option<i64> {
        self.sum.durations.least()
    }

    fn longest_ns(&self) -> Option<i64> {
        self.sum.durations.most()
    }

    fn sized_calls(&self) -> i64 {
        self.sum.sizes.count
    }

    fn transferred_bytes(&self) -> Option<i64> {
        self.sum.sizes.sum()
    }

    fn smallest_bytes(&self) -> Option<i64> {
        self.sum.sizes.least()
    }

    fn largest_bytes(&self) -> Option<i64> {
        self.sum.sizes.most()
    }

    fn first_ns(&self) -> i64 {
        self.sum.first_ns
    }

    fn last_ns(&self) -> i64 {
        self.sum.last_ns
    }

    fn first_task_id(&self) -> i32 {
        self.sum.first_task_id
    }

    fn last_task_id(&self) -> i32 {
        self.sum.last_task_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::Class;

    fn call(object: i32, dur_ns: i64, transferred: i64) -> CallRow {
        CallRow { object, dur_ns, transferred, ..CallRow::begun(1_000, 7, -1, 0, Class::Read) }
    }

    #[test]
    fn calls_with_the_same_key_are_one_sum() {
        let mut sums = ObjectUse::default();
        sums.add(&[call(3, 5, 100), call(4, NONE, NONE), call(3, 20, NONE), CallRow { errno: 2, ..call(3, 1, NONE) }]);
        let rows = sums.take();
        let found: Vec<_> =
            rows.iter().map(|row| (row.path_id(), row.errno(), row.calls(), row.time_ns(), row.transferred_bytes())).collect();
        assert_eq!(
            found,
            [(Some(3), None, 2, Some(25), Some(100)), (Some(4), None, 1, None, None), (Some(3), Some(2), 1, Some(1), None)]
        );
        assert_eq!((rows[0].shortest_ns(), rows[0].longest_ns(), rows[0].sized_calls()), (Some(5), Some(20), 1));
        assert_eq!((rows[0].first_ns(), rows[0].last_ns(), rows[0].first_task_id()), (1_000, 1_020, 7));
        assert!(sums.take().is_empty());
    }

    #[test]
    fn no_object_is_a_key_too() {
        let mut sums = ObjectUse::default();
        sums.add(&[call(-1, 1, NONE), call(0, 2, NONE), call(-1, 3, NONE)]);
        let found: Vec<_> = sums.take().iter().map(|row| (row.path_id(), row.calls())).collect();
        assert_eq!(found, [(None, 2), (Some(0), 1)]);
    }

    #[test]
    fn sums_too_large_for_their_columns_are_given_up() {
        let mut sums = ObjectUse::default();
        sums.add(&[call(3, i64::MAX / 2, NONE), call(3, i64::MAX / 2, NONE), call(3, 2, NONE)]);
        assert!(sums.take().is_empty());
        sums.add(&[call(3, 1, NONE)]);
        assert!(sums.take().is_empty());
    }

    #[test]
    fn many_sums_of_few_calls_are_given_up_and_those_of_many_are_not() {
        for (rounds, is_kept) in [(1, false), (8, true)] {
            let mut sums = ObjectUse::default();
            for object in 0..i32::try_from(MOST_HELD).unwrap() {
                sums.add(&vec![call(object, 1, NONE); rounds]);
            }
            assert_eq!(sums.is_full(), is_kept);
            assert_eq!(sums.take().len(), if is_kept { MOST_HELD } else { 0 });
        }
    }
}
