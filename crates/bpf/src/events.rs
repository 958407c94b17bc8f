//! Events as bytes, read without trust. Their layouts are defined in `bpf/event.h` and in
//! `events.h` of each family, from which `build.rs` generates the structures here: `struct
//! fault_event` is [`FaultEvent`], and kinds and flags are constants with their names in C.
//!
//! A spool may be cut, damaged or forged, so each length is checked against the available bytes. An
//! event that is shorter than its content requires is *broken*: nothing after it can be found
//! either, because its length would lead there.

/// A structure with its fields at the offsets of the C structure.
pub(crate) trait Layout: Sized {
    /// Length of the fixed part [B], without data after the last field.
    const BYTES: usize;

    /// Read the structure from its bytes; `None`: there are too few.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Write the structure. Bytes that no field uses do not change.
    fn write(&self, out: &mut [u8]);
}

/// Structures that the build generates from the headers.
#[allow(dead_code, reason = "some fields are for one of the two sides only")]
#[allow(clippy::identity_op, reason = "a first field that is an array stands at 0")]
mod layouts {
    use super::{Layout, part};

    include!(concat!(env!("OUT_DIR"), "/layouts.rs"));
}

pub(crate) use layouts::*;

/// Size of `struct event_header`: position (u32), length (u16), kind, flags.
const HEADER: usize = 8;

/// A set of kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kinds([u64; 4]);

impl Kinds {
    pub(crate) const NONE: Kinds = Kinds([0; 4]);

    pub(crate) const fn of(kinds: &[u8]) -> Kinds {
        let (mut words, mut index) = ([0; 4], 0);
        while index < kinds.len() {
            words[kinds[index] as usize / 64] |= 1 << (kinds[index] % 64);
            index += 1;
        }
        Kinds(words)
    }

    /// The kinds of both sets.
    pub(crate) fn and(self, other: Kinds) -> Kinds {
        Kinds(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    #[inline]
    pub(crate) fn has(&self, kind: u8) -> bool {
        self.0[usize::from(kind / 64)] >> (kind % 64) & 1 != 0
    }
}

/// An event that is not decoded yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    pub(crate) kind: u8,
    pub(crate) flags: u32,
    bytes: &'a [u8],
}

/// The first event of `bytes`, and the bytes after it; `None` if its length is impossible.
#[inline]
pub(crate) fn split(bytes: &[u8]) -> Option<(Raw<'_>, &[u8])> {
    let header: &[u8; HEADER] = bytes.first_chunk()?;
    let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
    if length < HEADER || length % 8 != 0 {
        return None;
    }
    let (event, rest) = bytes.split_at_checked(length)?;
    Some((Raw { kind: header[6], flags: u32::from(header[7]), bytes: event }, rest))
}

impl<'a> Raw<'a> {
    /// The fixed part, and the bytes after it.
    #[inline]
    pub(crate) fn read<L: Layout>(&self) -> Option<(L, &'a [u8])> {
        Some((L::read(self.bytes)?, self.bytes.get(L::BYTES..)?))
    }

    /// The whole event.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the event is long enough for a fixed part.
    #[inline]
    pub(crate) fn holds<L: Layout>(&self) -> bool {
        self.bytes.len() >= L::BYTES
    }

    /// The first number after the header: the time of most events.
    #[inline]
    pub(crate) fn first_number(&self) -> Option<u64> {
        Some(u64::from_le_bytes(*self.bytes.get(HEADER..)?.first_chunk()?))
    }
}

/// Append an event in the form of the kernel side. Its position is the number of bytes of `out`
/// before it, as for all events that were in no ring.
pub(crate) fn add<L: Layout>(out: &mut Vec<u8>, kind: u8, flags: u8, fixed: &L, after: &[u8]) {
    let start = out.len();
    let length = (L::BYTES + after.len()).next_multiple_of(8);
    out.resize(start + L::BYTES, 0);
    fixed.write(&mut out[start..]);
    out.extend(after);
    out.resize(start + length, 0);
    out[start..start + 4].copy_from_slice(&(start as u32).to_le_bytes());
    out[start + 4..start + 6].copy_from_slice(&(length as u16).to_le_bytes());
    (out[start + 6], out[start + 7]) = (kind, flags);
}

/// Take a structure from the front of these bytes.
#[inline]
pub(crate) fn take<L: Layout>(rest: &mut &[u8]) -> Option<L> {
    let taken = L::read(rest)?;
    *rest = &rest[L::BYTES..];
    Some(taken)
}

/// A text up to its NUL, or up to the end of the bytes.
pub(crate) fn until_nul(text: &[u8]) -> &[u8] {
    text.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// `N` bytes from an offset on. The caller has checked that they exist.
#[inline]
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("as many bytes as there are")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_is_read_as_it_was_written() {
        let fork = ForkEvent { at_ns: 1, parent_tid: 2, parent_pid: 3, tid: 4, pid: 5, user_id: 6, comm: *b"a name of 16 let" };
        let mut out = Vec::new();
        add(&mut out, EVENT_FORK, 0, &fork, &[]);
        add(&mut out, 200, 255, &fork, &[9; 3]);
        // Offsets of `families/processes/events.h`.
        assert_eq!((out.len(), out[24], out[32], &out[40..56]), (56 + 64, 4, 6, &b"a name of 16 let"[..]));
        let (event, rest) = split(&out).unwrap();
        let (again, after) = event.read::<ForkEvent>().unwrap();
        assert_eq!((event.kind, again.at_ns, again.tid, again.comm, after.len()), (EVENT_FORK, 1, 4, fork.comm, 0));
        assert_eq!(event.first_number(), Some(1));
        let (event, rest) = split(rest).unwrap();
        assert_eq!((event.kind, event.flags, rest.len()), (200, 255, 0));
        assert_eq!(event.read::<ForkEvent>().map(|(_, after)| after), Some(&[9, 9, 9, 0, 0, 0, 0, 0][..]));
    }

    #[test]
    fn a_set_of_kinds_holds_every_number_that_a_header_can() {
        let some = Kinds::of(&[0, 31, 32, 255]).and(Kinds::of(&[64]));
        let held: Vec<u8> = (0..=255).filter(|kind| some.has(*kind)).collect();
        assert_eq!(held, [0, 31, 32, 64, 255]);
        assert!((0..=255).all(|kind| !Kinds::NONE.has(kind)));
    }

    #[test]
    fn what_is_too_short_is_not_read() {
        for length in 0..ExitEvent::BYTES {
            assert!(ExitEvent::read(&vec![1; length]).is_none());
        }
        let header = |length: u16| [&[0; 4][..], &length.to_le_bytes(), &[1, 0]].concat();
        for length in [0, 4, 7, 9, 16] {
            assert!(split(&header(length)).is_none(), "{length}");
        }
        assert!(split(&header(8)).is_some_and(|(event, _)| event.first_number().is_none()));
    }
}
