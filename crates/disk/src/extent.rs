//! An extent: a contiguous part of a file on its device, as every method reports it.

/// Properties of an extent, as bits.
pub(crate) mod flag {
    pub(crate) const UNWRITTEN: u8 = 1;
    pub(crate) const COMPRESSED: u8 = 2;
    pub(crate) const ENCRYPTED: u8 = 4;
    pub(crate) const SHARED: u8 = 8;
    pub(crate) const DELAYED: u8 = 16;
    pub(crate) const INLINE: u8 = 32;
    pub(crate) const PACKED: u8 = 64;

    /// Names of the bits, in order.
    pub(crate) const WORDS: [&str; 7] = ["unwritten", "compressed", "encrypted", "shared", "delayed", "inline", "packed"];
    /// It has no location of its own on the device.
    pub(crate) const NOWHERE: u8 = DELAYED | INLINE;
}

/// A part of a file that is contiguous on the device [B].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) logical: u64,
    /// Meaningless with [`flag::NOWHERE`].
    pub(crate) physical: u64,
    pub(crate) length: u64,
    /// Size on the device, if it differs from the length in the file.
    pub(crate) stored: Option<u64>,
    pub(crate) flags: u8,
    pub(crate) device: u32,
}
