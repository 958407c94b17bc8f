//! Places in programs from which calls were made: `stacks`, and the numbers of its stacks.
//!
//! States of an id: *unknown* -> *copied* (parts of its stack have arrived, those of a thread one
//! after another) -> *known* (the call after them has arrived: its frames are found, and the copy
//! is dropped). Equal frames have one number, whatever their ids.

use rustc_hash::FxHashMap;
use sysdock_symbols::{Symbol, demangle, symbols};
use sysdock_table::{
    Batch, Recording, TableError,
    rows::{self, StacksColumns},
};

use crate::{
    conversion::places::Places,
    stacks::{
        events::{Of, StackPart},
        kernel::KernelNames,
        python::{Between, Codes, PythonFrame},
        python_events::PythonFrames,
        unwind::{Copy, End, Frame, Frames},
    },
};

/// Limit for threads whose stacks arrive in parts at a time; copies of others are dropped.
const MOST_COPIES: usize = 4096;
/// Longer than a copy of the kernel side [B].
const LONGEST_COPY: usize = 64 << 10;
const STACKS_PER_GROUP: usize = 16_384;
/// Last frame of a stack of which functions of Python are missing.
const MORE_PYTHON: &str = "[more functions of Python]";

/// Numbers about stacks, for the manifest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Calls and samples whose stack was never reported.
    pub(crate) lost: u64,
    /// Stacks that were copied again, and how many of those had other frames than the first of
    /// their id.
    pub(crate) compared: u64,
    pub(crate) differed: u64,
    /// Stacks that end before the place where their thread began.
    pub(crate) cut: u64,
}

/// A stack: frames of the machine, why there are no more, frames of Python, and whether there are
/// more of these.
type Stack = (Box<[Frame]>, End, Box<[PythonFrame]>, bool);

/// The names of functions of the kernel, and the boot id to which addresses belong.
type Kernel<'a> = (&'a KernelNames, Option<&'a str>);

/// A thread, and which of its stacks.
pub(crate) type Whose = (u32, Of);

/// All stacks of a recording.
#[derive(Default)]
pub(crate) struct StackRows {
    frames: Frames,
    /// By thread, with the id and whether it was reported before.
    copies: FxHashMap<Whose, (u64, bool, Copy)>,
    /// Frames of Python by thread, with the id of their stack.
    python: FxHashMap<Whose, (u64, Box<[PythonFrame]>, bool)>,
    numbers: FxHashMap<u64, i32>,
    /// By number.
    known: Vec<Stack>,
    index: FxHashMap<Stack, i32>,
    pub(crate) counts: Counts,
}

impl StackRows {
    /// Add a part of a stack.
    pub(crate) fn part(&mut self, part: &StackPart<'_>) {
        if part.offset == 0 {
            if self.copies.len() >= MOST_COPIES {
                self.copies.clear();
            }
            let StackPart { image, registers, interrupted, .. } = *part;
            let copy = Copy { image, registers, interrupted, bytes: part.bytes.to_vec() };
            self.copies.insert((part.tid, part.of), (part.id, part.again, copy));
            return;
        }
        let Some((id, _, copy)) = self.copies.get_mut(&(part.tid, part.of)) else { return };
        if *id == part.id && copy.bytes.len() == part.offset as usize && copy.bytes.len() + part.bytes.len() <= LONGEST_COPY {
            copy.bytes.extend_from_slice(part.bytes);
        }
    }

    /// Add functions of Python. They come before the first part of their stack.
    pub(crate) fn python(&mut self, frames: &PythonFrames<'_>, codes: &Codes) {
        if self.python.len() >= MOST_COPIES {
            self.python.clear();
        }
        self.python.insert((frames.tid, frames.of), (frames.id, codes.frames(frames), frames.cut));
    }

    /// The number of the stack of a call or a sample of a thread; -1: it has none.
    #[inline]
    pub(crate) fn number(
        &mut self,
        id: u64,
        (tid, of): Whose,
        pid: Option<u32>,
        places: &Places,
        epoch_ns: &impl Fn(u64) -> i64,
    ) -> i32 {
        if id == 0 {
            return -1;
        }
        if !self.copies.is_empty()
            && let Some((copied, again, copy)) = self.copies.remove(&(tid, of))
            && copied == id
        {
            let python = self.python.remove(&(tid, of)).filter(|(of, ..)| *of == id);
            let (frames, end) = self.frames.of(&copy, pid, places, epoch_ns);
            let (python, more) = python.map(|(_, frames, more)| (frames, more)).unwrap_or_default();
            // A sample may be taken where a stack has no frame yet.
            let is_cut = of == Of::Call && (end != End::Whole || more);
            return self.copied(id, again, is_cut, (frames.into_boxed_slice(), end, python, more));
        }
        let number = self.numbers.get(&id).copied().unwrap_or(-1);
        self.counts.lost += u64::from(number < 0);
        number
    }

    /// The number of a stack of the kernel, from the addresses of its functions, the innermost
    /// first; -1: there are none. `interrupted`: the innermost function was stopped at its address;
    /// otherwise it called the code that recorded the stack.
    pub(crate) fn kernel_number(&mut self, addresses: impl Iterator<Item = u64>, end: End, interrupted: bool) -> i32 {
        let object = self.frames.objects.kernel();
        let frames = addresses.zip(0..).map(|(address, place)| Frame { object, address, interrupted: interrupted && place == 0 });
        let frames: Box<[Frame]> = frames.collect();
        if frames.is_empty() { -1 } else { self.number_of((frames, end, Box::default(), false)) }
    }

    fn number_of(&mut self, stack: Stack) -> i32 {
        self.index.get(&stack).copied().unwrap_or_else(|| {
            let number = i32::try_from(self.known.len()).expect("fewer than 2^31 stacks");
            self.known.push(stack.clone());
            self.index.insert(stack, number);
            number
        })
    }

    fn copied(&mut self, id: u64, again: bool, is_cut: bool, stack: Stack) -> i32 {
        let known = self.known.len();
        let number = self.number_of(stack);
        self.counts.cut += u64::from(is_cut && self.known.len() > known);
        let before = *self.numbers.entry(id).or_insert(number);
        self.counts.compared += u64::from(again);
        self.counts.differed += u64::from(again && before != number);
        number
    }

    /// The functions of stacks of the kernel, the innermost first, by number of the stack.
    pub(crate) fn kernel_functions(&self, stacks: &[i32], (names, boot): Kernel<'_>) -> FxHashMap<i32, Vec<String>> {
        let frames = |stack: &i32| usize::try_from(*stack).ok().and_then(|stack| self.known.get(stack)).map(|known| &known.0);
        let address = |frame: &Frame| frame.address.wrapping_sub(after(frame));
        let mut addresses: Vec<u64> = stacks.iter().filter_map(frames).flatten().map(address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let found = names.symbols(&addresses, boot);
        let function = |frame: &Frame| {
            let place = addresses.binary_search(&address(frame)).ok()?;
            found[place].first()?.function.clone()
        };
        let functions = |stack: &i32| Some((*stack, frames(stack)?.iter().filter_map(function).collect()));
        stacks.iter().filter_map(functions).collect()
    }

    /// Number of stacks.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Write the table.
    pub(crate) fn write(&self, places: &Places, kernel: Kernel<'_>, recording: &mut Recording) -> Result<(), TableError> {
        let symbols = self.symbols(kernel);
        for first in (0..self.known.len()).step_by(STACKS_PER_GROUP) {
            let stacks = first..self.known.len().min(first + STACKS_PER_GROUP);
            recording.write_batch(&mut self.rows(stacks, &symbols, &places.codes))?;
        }
        Ok(())
    }

    /// The symbols of each frame.
    fn symbols(&self, (names, boot): Kernel<'_>) -> FxHashMap<Frame, Vec<Symbol>> {
        let mut by_object: FxHashMap<u32, Vec<Frame>> = FxHashMap::default();
        let mut all: FxHashMap<Frame, Vec<Symbol>> = FxHashMap::default();
        for frame in self.known.iter().flat_map(|(frames, ..)| frames) {
            if all.insert(*frame, Vec::new()).is_none() {
                by_object.entry(frame.object).or_default().push(*frame);
            }
        }
        for (object, mut frames) in by_object {
            frames.sort_unstable_by_key(|frame| frame.address);
            let addresses: Vec<u64> = frames.iter().map(|frame| frame.address.wrapping_sub(after(frame))).collect();
            let found = if self.frames.objects.is_kernel(object) {
                names.symbols(&addresses, boot)
            } else {
                let object = &self.frames.objects.all[object as usize];
                if let Some(jitted) = &object.jitted {
                    let found = addresses.iter().map(|address| jitted.symbol(*address).into_iter().collect());
                    all.extend(frames.into_iter().zip(found));
                    continue;
                }
                if object.binary.is_none() {
                    continue;
                }
                symbols(&object.readable_path(), &addresses, demangle)
            };
            all.extend(frames.into_iter().zip(found));
        }
        all
    }

    fn rows(
        &self,
        stacks: std::ops::Range<usize>,
        symbols: &FxHashMap<Frame, Vec<Symbol>>,
        codes: &Codes,
    ) -> Batch<StacksColumns> {
        let mut rows = Batch::default();
        for number in stacks {
            let (frames, end, python, more) = &self.known[number];
            let mut python = Between::new(python);
            let stack_id = i32::try_from(number).expect("numbers are small");
            let mut place = 0..;
            let mut add = |Row { object, function, offset, source, address }: Row| {
                rows.push(&rows::Stacks {
                    stack_id,
                    frame: place.next().unwrap_or(i32::MAX),
                    object: object.map(Into::into),
                    function: function.map(Into::into),
                    offset,
                    source: source.map(Into::into),
                    address,
                });
            };
            for frame in frames {
                for frame in
                    symbols[frame].iter().flat_map(|symbol| python.before(symbol.function.as_deref().unwrap_or_default()))
                {
                    add(python_row(frame, codes));
                }
                self.rows_of(frame, &symbols[frame], &mut add);
            }
            python.left().iter().for_each(|frame| add(python_row(frame, codes)));
            if *more {
                add(Row { function: Some(MORE_PYTHON.into()), ..Row::default() });
            }
            if let Some(word) = end.name() {
                add(Row { function: Some(word.into()), ..Row::default() });
            }
        }
        rows
    }

    /// Add one row for each function at the address of a frame.
    fn rows_of(&self, frame: &Frame, symbols: &[Symbol], add: &mut impl FnMut(Row)) {
        let object = Some(self.frames.objects.all[frame.object as usize].path.display().to_string());
        // Addresses in the kernel are left out, because they would help attackers.
        let address = Some(frame.address.cast_signed()).filter(|_| !self.frames.objects.is_kernel(frame.object));
        if symbols.is_empty() {
            add(Row { object, address, offset: address, ..Row::default() });
            return;
        }
        for symbol in symbols {
            let Symbol { object: module, function, offset, source } = symbol.clone();
            // The offset of the address that is shown, not of the call before it.
            let offset = offset.map(|offset| offset.saturating_add(after(frame).cast_signed()));
            add(Row { object: module.or_else(|| object.clone()), function, offset, source, address });
        }
    }
}

/// Distance of a frame's address from the instruction that it stands for [B]: a call is before the
/// address to which it returns, and so is the instruction that entered the kernel.
fn after(frame: &Frame) -> u64 {
    u64::from(!frame.interrupted)
}

fn python_row(frame: &PythonFrame, codes: &Codes) -> Row {
    let (object, function, source) = codes.names(frame);
    Row { object, function, source, ..Row::default() }
}

/// A row without its key.
#[derive(Debug, Default)]
struct Row {
    object: Option<String>,
    function: Option<String>,
    offset: Option<i64>,
    source: Option<String>,
    address: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        events::{self, EVENT_PYTHON, MappedEvent, PythonEvent},
        stacks::events::ProgramMapped,
        testing::{Bytes, Random},
    };

    #[test]
    fn whatever_a_spool_says_of_stacks_is_no_reason_to_panic() {
        let mut random = Random(3);
        let (mut stacks, mut places) = (StackRows::default(), Places::default());
        let odd = |random: &mut Random| match random.below(4) {
            0 => random.below(5),
            1 => u64::MAX - random.below(5),
            _ => random.below(1 << 47),
        };
        for _ in 0..20_000 {
            let [image, parent, start, length, offset, file] = std::array::from_fn(|_| odd(&mut random));
            match random.below(5) {
                4 => {
                    let number = random.below(4) as u32;
                    let fixed = PythonEvent { id: random.below(9), tid: 1, number, ..PythonEvent::default() };
                    let frames = [image, start, length, offset].map(u64::to_le_bytes).concat();
                    let bytes = Bytes::of(EVENT_PYTHON, &fixed).text(&frames).bytes();
                    let (raw, _) = events::split(&bytes).unwrap();
                    PythonFrames::of(&raw).iter().for_each(|frames| stacks.python(frames, &places.codes));
                }
                0 => places.images.mapped(MappedEvent { image, parent, start, length, offset, file, at_ns: 0 }),
                1 => places.images.program(ProgramMapped {
                    image,
                    at_ns: 0,
                    file,
                    code_start: start,
                    code_bytes: length,
                    loader: parent,
                    vdso: image,
                    entry: offset,
                }),
                _ => {
                    let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.below(256) as u8).collect();
                    let registers = std::array::from_fn(|_| odd(&mut random));
                    let (id, tid) = (random.below(9), random.below(100_000) as u32);
                    let offset = if random.below(2) == 0 { 0 } else { offset as u32 };
                    let again = random.below(2) == 0;
                    let of = if random.below(2) == 0 { Of::Call } else { Of::Sample };
                    let part = StackPart { id, image, registers, tid, offset, again, of, interrupted: again, bytes: &bytes };
                    stacks.part(&part);
                    let other = if random.below(2) == 0 { tid } else { 1 };
                    stacks.number(id, (other, of), Some(0), &places, &|_| 0);
                    stacks.kernel_number([odd(&mut random)].into_iter(), End::Whole, random.below(2) == 0);
                }
            }
        }
        assert!(stacks.copies.len() <= MOST_COPIES);
        assert!(stacks.counts.lost > 0 && stacks.len() > 0);
    }

    #[test]
    fn a_copy_is_put_together_from_its_parts_and_no_others() {
        let mut stacks = StackRows::default();
        let fixed = StackPart {
            id: 0,
            image: 1,
            registers: [0; 8],
            tid: 7,
            offset: 0,
            again: false,
            of: Of::Call,
            interrupted: false,
            bytes: &[],
        };
        let part = |id, offset, bytes| StackPart { id, offset, bytes, ..fixed };
        stacks.part(&part(5, 0, &[1; 16]));
        stacks.part(&part(5, 16, &[2; 8]));
        // A part of another stack, and one with a gap before it.
        stacks.part(&part(6, 24, &[3; 8]));
        stacks.part(&part(5, 32, &[4; 8]));
        assert_eq!(stacks.copies[&(7, Of::Call)].2.bytes, [[1; 8], [1; 8], [2; 8]].concat());
        let number = stacks.number(5, (7, Of::Call), None, &Places::default(), &|_| 0);
        assert_eq!((number, stacks.number(5, (8, Of::Call), None, &Places::default(), &|_| 0)), (0, 0));
        assert_eq!((stacks.number(6, (7, Of::Call), None, &Places::default(), &|_| 0), stacks.counts.lost), (-1, 1));
    }
}
