//! The event of a call: a fixed part, and after it the parts that its flags announce.

use crate::events::{
    CALL_MAPPING, CALL_NO_START, CALL_NUMBER, CALL_PATH, CALL_POSITIONS, CALL_RING, CALL_SECOND_FILE, CALL_SECOND_PATH,
    CALL_STACK, CALL_UNFINISHED, CallEvent, CallMapping, CallPath, CallSecondFile, Layout, POSITION_OF_FIRST, POSITION_OF_SECOND,
    Raw, take,
};

/// Flags that announce nothing after the fixed part.
const PLAIN: u32 = CALL_NO_START | CALL_UNFINISHED | CALL_RING;

/// A system call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Call<'a> {
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: u64,
    pub(crate) number: u16,
    pub(crate) tid: u32,
    pub(crate) fd: i32,
    pub(crate) result: i64,
    pub(crate) file: u64,
    pub(crate) offset: i64,
    pub(crate) extra: u64,
    pub(crate) no_start: bool,
    pub(crate) unfinished: bool,
    /// Whether it was submitted to an io_uring.
    pub(crate) ring: bool,
    /// Whether the offset is the file position, although the call could have named one.
    pub(crate) at_position: bool,
    /// The descriptor at whose position a copy writes.
    pub(crate) to_position_of: Option<i32>,
    /// Id of the second file and its offset; of a new pair, its second descriptor.
    pub(crate) second: Option<(u64, i64)>,
    pub(crate) path: Option<PathArgument<'a>>,
    pub(crate) second_path: Option<PathArgument<'a>>,
    pub(crate) mapping: Option<CallMapping>,
    /// Id of the stack; 0: none.
    pub(crate) stack: u64,
}

impl<'a> Call<'a> {
    /// `None`: the event is broken. Not inlined, so that the large result is built in place.
    #[inline(never)]
    pub(crate) fn of(event: &Raw<'a>) -> Option<Self> {
        let (fixed, mut rest) = event.read::<CallEvent>()?;
        let has_positions = fixed.duration_ns_and_number as u32 & CALL_POSITIONS != 0;
        let mut call = Call {
            start_ns: fixed.start_ns,
            duration_ns: fixed.duration_ns_and_number >> 16,
            number: (fixed.duration_ns_and_number as u32 & CALL_NUMBER) as u16,
            at_position: has_positions,
            tid: fixed.tid,
            fd: fixed.fd,
            result: fixed.result,
            file: fixed.file,
            offset: fixed.offset,
            extra: fixed.extra,
            no_start: event.flags & CALL_NO_START != 0,
            unfinished: event.flags & CALL_UNFINISHED != 0,
            ring: event.flags & CALL_RING != 0,
            ..Call::default()
        };
        if event.flags & !PLAIN != 0 {
            call.fill(event.flags, &mut rest)?;
        }
        Some(call)
    }

    /// Whether the event contains everything that its flags announce.
    #[inline]
    pub(crate) fn is_whole(event: &Raw<'_>) -> bool {
        if event.flags & !PLAIN == 0 { event.holds::<CallEvent>() } else { Call::of(event).is_some() }
    }

    /// The end of the call, `CLOCK_MONOTONIC` [ns].
    #[inline]
    pub(crate) fn end_ns(event: &Raw<'_>) -> Option<u64> {
        let (fixed, _) = event.read::<CallEvent>()?;
        Some(fixed.start_ns.saturating_add(fixed.duration_ns_and_number >> 16))
    }

    fn take_second(&mut self, rest: &mut &'a [u8]) -> Option<()> {
        if !self.at_position {
            // The format of an earlier recorder.
            let (old, after) = rest.split_first_chunk::<16>()?;
            let CallSecondFile { file, offset, .. } = CallSecondFile::read(&[&old[..], &[0; 8]].concat())?;
            (self.second, *rest) = (Some((file, offset)), after);
            return Some(());
        }
        let CallSecondFile { file, offset, fd, at_position } = take(rest)?;
        self.second = Some((file, offset));
        self.at_position = at_position & POSITION_OF_FIRST != 0;
        self.to_position_of = (at_position & POSITION_OF_SECOND != 0).then_some(fd);
        Some(())
    }

    /// Decode the parts after the fixed part.
    fn fill(&mut self, flags: u32, rest: &mut &'a [u8]) -> Option<()> {
        if flags & CALL_SECOND_FILE != 0 {
            self.take_second(rest)?;
        }
        if flags & CALL_MAPPING != 0 {
            self.mapping = Some(take(rest)?);
        }
        if flags & CALL_STACK != 0 {
            let (stack, after) = rest.split_first_chunk()?;
            (self.stack, *rest) = (u64::from_le_bytes(*stack), after);
        }
        if flags & CALL_PATH != 0 {
            self.path = Some(PathArgument::take(rest)?);
        }
        if flags & CALL_SECOND_PATH != 0 {
            self.second_path = Some(PathArgument::take(rest)?);
        }
        Some(())
    }
}

/// A path as the program gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathArgument<'a> {
    /// Id of the directory at which a relative path starts; 0: unknown.
    pub(crate) base: u64,
    /// `None`: the text could not be read.
    pub(crate) text: Option<&'a [u8]>,
}

impl<'a> PathArgument<'a> {
    fn take(rest: &mut &'a [u8]) -> Option<Self> {
        let CallPath { base, length, flags } = take(rest)?;
        let length = usize::from(length);
        let (block, after) = rest.split_at_checked(length.next_multiple_of(8))?;
        *rest = after;
        Some(PathArgument { base, text: (flags & 1 == 0).then_some(&block[..length]) })
    }
}
