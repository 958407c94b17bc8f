//! Events as words of 64 bits, from recorders to readers.
//!
//! | bits 62-63 | event | the rest |
//! |---|---|---|
//! | 0 | block | 0-31: its number in the dictionary |
//! | 1 | access | 0-47: address; 48: store; 49-51: log2 of the size; 52-60: index of the instruction in its block |
//! | 2 | note | 56-61: kind of note; 0-55: its value |
//!
//! A block is a run of instructions that is entered at its first one. Its word precedes those of
//! its accesses. If it was left early, a note just before the next block states after how many
//! instructions.

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block is entered: the number of its entry in the dictionary.
    Block(u32),
    /// The block accesses memory.
    Access(Access),
    /// Any other event.
    Note(Note),
}

/// A load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Virtual address, sign-extended from bit 47.
    pub address: u64,
    /// Whether it was written.
    pub store: bool,
    /// Log2 of its size [B]: 0 to 6 (64 bytes).
    pub size_log2: u8,
    /// Index of the instruction in the block, from 0.
    pub instruction: u16,
}

/// An event other than blocks and accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// The previous block executed only this many of its instructions: a fault, an interrupt or a
    /// signal came.
    Left(u16),
    /// The program executed a marker.
    Marker(u32),
    /// The following events belong to this task, if the recorder knows it; otherwise the kernel's
    /// code shows it.
    Task(u32),
    /// A system call was made, and its kernel side is not in the trace.
    Untraced(u32),
    /// A signal was delivered.
    Signal(u32),
}

const KIND: u32 = 62;
const NOTE: u32 = 56;
pub(crate) const ADDRESS: u64 = (1 << 48) - 1;
const VALUE: u64 = (1 << NOTE) - 1;

impl Event {
    /// The event as a word. Bits that do not fit are cut.
    #[must_use]
    #[inline]
    pub fn pack(self) -> u64 {
        match self {
            Event::Block(id) => u64::from(id),
            Event::Access(access) => {
                1 << KIND
                    | u64::from(access.instruction & 0x1ff) << 52
                    | u64::from(access.size_log2 & 7) << 49
                    | u64::from(access.store) << 48
                    | (access.address & ADDRESS)
            }
            Event::Note(note) => {
                let (kind, value) = note.parts();
                2 << KIND | u64::from(kind) << NOTE | u64::from(value)
            }
        }
    }

    /// `None`: no recorder writes such a word.
    #[must_use]
    #[inline]
    pub fn unpack(word: u64) -> Option<Event> {
        Some(match word >> KIND {
            0 => Event::Block(u32::try_from(word).ok()?),
            1 => Event::Access(Access {
                address: address_of(word),
                store: word >> 48 & 1 != 0,
                size_log2: (word >> 49 & 7) as u8,
                instruction: (word >> 52 & 0x1ff) as u16,
            }),
            2 => Event::Note(Note::of((word >> NOTE & 0x3f) as u8, u32::try_from(word & VALUE).ok()?)?),
            _ => return None,
        })
    }
}

/// The address of an access.
#[inline]
pub(crate) fn address_of(word: u64) -> u64 {
    ((word << 16).cast_signed() >> 16).cast_unsigned()
}

impl Note {
    pub(crate) fn parts(self) -> (u8, u32) {
        match self {
            Note::Left(count) => (0, u32::from(count)),
            Note::Marker(value) => (1, value),
            Note::Task(id) => (2, id),
            Note::Untraced(number) => (3, number),
            Note::Signal(number) => (4, number),
        }
    }

    pub(crate) fn of(kind: u8, value: u32) -> Option<Note> {
        Some(match kind {
            0 => Note::Left(u16::try_from(value).ok()?),
            1 => Note::Marker(value),
            2 => Note::Task(value),
            3 => Note::Untraced(value),
            4 => Note::Signal(value),
            _ => return None,
        })
    }
}
