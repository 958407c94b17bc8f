//! A piece of a file on its device, as every method reports it.

/// What is special of an extent, as bits.
pub(crate) mod flag {
    pub(crate) const UNWRITTEN: u8 = 1;
    pub(crate) const COMPRESSED: u8 = 2;
    pub(crate) const ENCRYPTED: u8 = 4;
    pub(crate) const SHARED: u8 = 8;
    pub(crate) const DELAYED: u8 = 16;
    pub(crate) const INLINE: u8 = 32;
    pub(crate) const PACKED: u8 = 64;

    /// The words of the bits, in order.
    pub(crate) const WORDS: [&str; 7] = ["unwritten", "compressed", "encrypted", "shared", "delayed", "inline", "packed"];
    /// It has no place of its own on the device.
    pub(crate) const NOWHERE: u8 = DELAYED | INLINE;
}

/// A piece of a file that lies in one piece on the device [B].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) logical: u64,
    /// Of no meaning with [`flag::NOWHERE`].
    pub(crate) physical: u64,
    pub(crate) length: u64,
    /// What it takes up on the device, where that is another number.
    pub(crate) stored: Option<u64>,
    pub(crate) flags: u8,
    pub(crate) device: u32,
}
