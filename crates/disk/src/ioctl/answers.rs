//! Answers of a fictitious kernel, for the fuzzing targets.
//!
//! An answer is a byte with the number of ranges of the request that are written, and for each its
//! offset and length (16 bits each, little endian) and the bytes. 255 is an error. After the last
//! answer all others are errors.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use super::Request;

static ANSWERS: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Use these answers from now on, in the order of the queries of all threads; `None`: query the
/// kernel.
pub(crate) fn set(answers: Option<&[u8]>) {
    // Reversed, so that the first answer is taken from the end.
    let reversed = answers.map(|answers| answers.iter().rev().copied().collect());
    *ANSWERS.lock().unwrap_or_else(PoisonError::into_inner) = reversed;
}

/// Write the next answer into a request; `None`: query the kernel.
pub(crate) fn answer<T: Request>(request: &mut T) -> Option<io::Result<()>> {
    let mut guard = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    let answers = guard.as_mut()?;
    // SAFETY: any bytes are a valid request, and this is all of it.
    let bytes = unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(request).cast::<u8>(), size_of::<T>()) };
    Some(write(answers, bytes).ok_or_else(|| io::Error::from_raw_os_error(libc::EIO)))
}

fn write(answers: &mut Vec<u8>, request: &mut [u8]) -> Option<()> {
    let places = answers.pop().filter(|places| *places != u8::MAX)?;
    for _ in 0..places {
        let mut number = || Some(usize::from(u16::from_le_bytes([answers.pop()?, answers.pop()?])));
        let (place, length) = (number()?, number()?);
        for at in place..place + length {
            let byte = answers.pop()?;
            request.get_mut(at).into_iter().for_each(|place| *place = byte);
        }
    }
    Some(())
}
