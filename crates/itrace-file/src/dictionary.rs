//! The executed code, each block once.
//!
//! An entry: address as a difference to the previous one (zigzag LEB128), number of instructions
//! (LEB128), the length of each (a byte), their code.

use crate::Damage;
use crate::coding::{put, take, unzigzag, zigzag};

/// A run of instructions that is entered at the first one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Block {
    /// Virtual address of its first instruction.
    pub address: u64,
    /// Code of the block.
    pub code: Box<[u8]>,
    /// Length of each instruction [B], 1 to 15.
    pub lengths: Box<[u8]>,
}

/// Append an entry.
pub(crate) fn encode(block: &Block, before: u64, out: &mut Vec<u8>) {
    put(out, zigzag(block.address.wrapping_sub(before)));
    put(out, block.lengths.len() as u64);
    out.extend_from_slice(&block.lengths);
    out.extend_from_slice(&block.code);
}

/// Read all entries of a payload.
pub(crate) fn decode(mut bytes: &[u8], blocks: &mut Vec<Block>) -> Result<(), Damage> {
    let mut before = blocks.last().map_or(0, |block| block.address);
    while !bytes.is_empty() {
        let address = before.wrapping_add(unzigzag(take(&mut bytes)?));
        let count = usize::try_from(take(&mut bytes)?).map_err(|_| Damage)?;
        let lengths = split(&mut bytes, count)?;
        let code = split(&mut bytes, lengths.iter().map(|&length| usize::from(length)).sum())?;
        blocks.push(Block { address, code: code.into(), lengths: lengths.into() });
        before = address;
    }
    Ok(())
}

fn split<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8], Damage> {
    let (first, rest) = bytes.split_at_checked(count).ok_or(Damage)?;
    *bytes = rest;
    Ok(first)
}
