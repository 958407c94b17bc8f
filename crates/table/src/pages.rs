//! Values of a column as Parquet pages.
//!
//! Headers and metadata are the parquet crate's. The encodings are our own, because integers that
//! are already grouped by column can be encoded several times faster than through Arrow arrays.
//! Formats: parquet-format, `Encodings.md` (RLE_DICTIONARY, DELTA_BINARY_PACKED, PLAIN) and
//! `README.md` ("Data Pages"). Pages have version 1, in which zstd compresses the definition levels
//! too. Dictionary codes are whole bytes, because only then does zstd find repeated sequences of
//! calls.

use bytes::Bytes;
use parquet::{
    basic::{Encoding, PageType},
    column::page::{CompressedPage, Page, PageWriter},
    errors::Result,
    file::writer::{SerializedPageWriter, TrackedWrite},
};

use crate::dictionary::Dictionary;

/// Represents NULL among the values of a column.
pub const NULL: i64 = i64::MIN;

/// Number of distinct values of a column chunk above which a dictionary no longer pays.
const LARGEST_DICTIONARY: usize = 1 << 15;

/// Number of rows of a page.
const ROWS_PER_PAGE: usize = 1 << 14;

/// The finished pages of a column chunk, and what its metadata states about them.
pub(crate) struct Pages {
    sink: TrackedWrite<Vec<u8>>,
    pub(crate) uncompressed: usize,
}

/// The compressor that all columns use in turn: a context for each would push everything else out
/// of the cache.
pub(crate) struct Press {
    zstd: zstd::bulk::Compressor<'static>,
    body: Vec<u8>,
    /// The values of a block that are not NULL.
    present: Vec<i64>,
}

impl Press {
    pub(crate) fn new() -> Self {
        Press { zstd: zstd::bulk::Compressor::new(1).expect("level 1 exists"), body: Vec::new(), present: Vec::new() }
    }
}

impl Pages {
    pub(crate) fn new() -> Self {
        Pages { sink: TrackedWrite::new(Vec::new()), uncompressed: 0 }
    }

    /// Add a data page of `rows` rows: definition levels (none for a column without NULL), then
    /// values.
    fn data(
        &mut self,
        press: &mut Press,
        rows: usize,
        levels: Option<&[u8]>,
        encoding: Encoding,
        values: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let body = &mut press.body;
        body.clear();
        if let Some(levels) = levels {
            body.extend_from_slice(&u32::try_from(levels.len()).expect("a page is small").to_le_bytes());
            body.extend_from_slice(levels);
        }
        values(body);
        let page = Page::DataPage {
            buf: press.zstd.compress(body)?.into(),
            num_values: u32::try_from(rows).expect("a page is small"),
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.write(page, body.len())
    }

    fn write(&mut self, page: Page, size: usize) -> Result<()> {
        debug_assert!(matches!(page.page_type(), PageType::DATA_PAGE | PageType::DICTIONARY_PAGE));
        let written = SerializedPageWriter::new(&mut self.sink).write_page(CompressedPage::new(page, size))?;
        self.uncompressed += written.uncompressed_size;
        Ok(())
    }

    /// The pages as they will be in the file, the dictionary first, and the length of the
    /// dictionary. There are none afterwards.
    pub(crate) fn take(&mut self, press: &mut Press, dictionary: Option<(&[u8], usize)>) -> Result<(Bytes, usize)> {
        let data = std::mem::replace(&mut self.sink, TrackedWrite::new(Vec::new())).into_inner()?;
        let Some((values, count)) = dictionary else { return Ok((data.into(), 0)) };
        let page = Page::DictionaryPage {
            buf: press.zstd.compress(values)?.into(),
            num_values: u32::try_from(count).expect("a dictionary is small"),
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        self.write(page, values.len())?;
        let mut whole = std::mem::replace(&mut self.sink, TrackedWrite::new(Vec::new())).into_inner()?;
        let length = whole.len();
        whole.extend_from_slice(&data);
        Ok((whole.into(), length))
    }
}

/// Encoding of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Differences of increasing numbers.
    Delta,
    /// Few distinct values; if there are too many, the rest are plain numbers of this many bytes.
    Dictionary { bytes: usize },
    /// Codes of texts: a dictionary without a limit.
    Texts,
    /// One bit for each value.
    Bits,
}

/// Appends the values of a page.
type Body<'a> = &'a dyn Fn(&mut Vec<u8>);

/// Least and greatest value of a column chunk, and the number of NULLs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) least: i64,
    pub(crate) greatest: i64,
    pub(crate) nulls: usize,
}

impl Range {
    const EMPTY: Range = Range { least: i64::MAX, greatest: i64::MIN, nulls: 0 };

    fn with(self, values: &[i64]) -> Self {
        let least = values.iter().copied().fold(self.least, i64::min);
        let greatest = values.iter().copied().fold(self.greatest, i64::max);
        Range { least, greatest, ..self }
    }
}

/// Collects the values of one page.
pub(crate) struct PageBuilder {
    layout: Layout,
    nullable: bool,
    rows: usize,
    levels: Vec<u8>,
    codes: Vec<u16>,
    numbers: Vec<i64>,
    pub(crate) dictionary: Dictionary,
    /// The dictionary became too large, so the rest of the column chunk is plain.
    plain: bool,
    /// Range of the values that are not in the dictionary.
    pub(crate) range: Range,
}

impl PageBuilder {
    pub(crate) fn new(layout: Layout, nullable: bool) -> Self {
        PageBuilder {
            layout,
            nullable,
            rows: 0,
            levels: Vec::new(),
            codes: Vec::new(),
            numbers: Vec::new(),
            dictionary: Dictionary::new(),
            plain: false,
            range: Range::EMPTY,
        }
    }

    /// Add values. If the number of rows is not a multiple of 8, they must be the last of their
    /// page.
    pub(crate) fn add(&mut self, values: &[i64], pages: &mut Pages, press: &mut Press) -> Result<()> {
        let coded = self.is_coded(pages, press)?;
        let present = if self.nullable { self.add_levels(values, &mut press.present) } else { values };
        self.range.nulls += values.len() - present.len();
        if coded {
            self.dictionary.encode(present, &mut self.codes);
        } else {
            self.numbers.extend_from_slice(present);
        }
        self.added(values.len(), pages, press)
    }

    /// Add the same value several times.
    pub(crate) fn add_equal(&mut self, value: i64, rows: usize, pages: &mut Pages, press: &mut Press) -> Result<()> {
        let coded = self.is_coded(pages, press)?;
        if self.nullable {
            self.add_equal_levels(rows, value != NULL);
        }
        self.range.nulls += if value == NULL { rows } else { 0 };
        if value != NULL && coded {
            let code = self.dictionary.code(value);
            self.codes.resize(self.codes.len() + rows, code);
        } else if value != NULL {
            self.numbers.resize(self.numbers.len() + rows, value);
        }
        self.added(rows, pages, press)
    }

    /// Whether values are still dictionary codes.
    fn is_coded(&mut self, pages: &mut Pages, press: &mut Press) -> Result<bool> {
        if matches!(self.layout, Layout::Dictionary { .. }) && !self.plain && self.dictionary.values.len() > LARGEST_DICTIONARY {
            self.close(pages, press)?;
            self.plain = true;
        }
        Ok(matches!(self.layout, Layout::Dictionary { .. } | Layout::Texts) && !self.plain)
    }

    fn added(&mut self, rows: usize, pages: &mut Pages, press: &mut Press) -> Result<()> {
        self.rows += rows;
        if self.rows >= ROWS_PER_PAGE || !rows.is_multiple_of(8) {
            self.close(pages, press)?;
        }
        Ok(())
    }

    /// Add definition levels of values that are not all equal, as one run. Returns the values that
    /// are not NULL.
    fn add_levels<'v>(&mut self, values: &'v [i64], present: &'v mut Vec<i64>) -> &'v [i64] {
        if !values.contains(&NULL) {
            self.add_equal_levels(values.len(), true);
            return values;
        }
        put_varint(&mut self.levels, ((values.len().div_ceil(8) as u64) << 1) | 1);
        present.resize(present.len().max(values.len()), 0);
        let mut count = 0;
        self.levels.extend(values.chunks(8).map(|eight| {
            let mut bits = 0;
            for (bit, value) in eight.iter().enumerate() {
                // Every value is written, and kept only if it is not NULL: there is no branch to
                // predict.
                present[count] = *value;
                let is_present = *value != NULL;
                count += usize::from(is_present);
                bits |= u8::from(is_present) << bit;
            }
            bits
        }));
        &present[..count]
    }

    fn add_equal_levels(&mut self, rows: usize, present: bool) {
        put_varint(&mut self.levels, (rows as u64) << 1);
        self.levels.push(u8::from(present));
    }

    /// Finish the page.
    pub(crate) fn close(&mut self, pages: &mut Pages, press: &mut Press) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        self.range = self.range.with(&self.numbers);
        let levels = self.nullable.then_some(self.levels.as_slice());
        let (encoding, values): (Encoding, Body<'_>) = match self.layout {
            Layout::Delta => (Encoding::DELTA_BINARY_PACKED, &|out| put_deltas(out, &self.numbers)),
            Layout::Bits => (Encoding::PLAIN, &|out| put_bits(out, &self.numbers)),
            Layout::Dictionary { ref bytes } if self.plain => (Encoding::PLAIN, &|out| put_plain(out, &self.numbers, *bytes)),
            // An empty dictionary is not written, because readers refuse codes without one.
            _ if self.dictionary.values.is_empty() => (Encoding::PLAIN, &|_| {}),
            _ => (Encoding::RLE_DICTIONARY, &|out| put_codes(out, &self.codes, self.dictionary.values.len() > 256)),
        };
        pages.data(press, self.rows, levels, encoding, values)?;
        self.rows = 0;
        self.levels.clear();
        self.codes.clear();
        self.numbers.clear();
        Ok(())
    }

    /// Start a new column chunk.
    pub(crate) fn clear(&mut self) {
        self.dictionary.clear();
        self.plain = false;
        self.range = Range::EMPTY;
    }

    /// Range of all values since the column chunk began.
    pub(crate) fn whole_range(&self) -> Range {
        self.range.with(&self.dictionary.values)
    }

    /// Encodings used by the data pages of this column chunk.
    pub(crate) fn encodings(&self) -> Vec<Encoding> {
        match self.layout {
            Layout::Delta => vec![Encoding::RLE, Encoding::DELTA_BINARY_PACKED],
            Layout::Bits => vec![Encoding::RLE, Encoding::PLAIN],
            _ => vec![Encoding::RLE, Encoding::PLAIN, Encoding::RLE_DICTIONARY],
        }
    }
}

/// Append dictionary codes in whole bytes: their width, then one bit-packed run.
fn put_codes(out: &mut Vec<u8>, codes: &[u16], wide: bool) {
    out.push(if wide { 16 } else { 8 });
    put_varint(out, ((codes.len().div_ceil(8) as u64) << 1) | 1);
    let padding = codes.len().next_multiple_of(8) - codes.len();
    if wide {
        let start = out.len();
        out.resize(start + 2 * (codes.len() + padding), 0);
        for (two, code) in out[start..].chunks_exact_mut(2).zip(codes) {
            two.copy_from_slice(&code.to_le_bytes());
        }
    } else {
        out.extend(codes.iter().map(|code| *code as u8));
        out.resize(out.len() + padding, 0);
    }
}

pub(crate) fn put_plain(out: &mut Vec<u8>, numbers: &[i64], bytes: usize) {
    match bytes {
        8 => numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes())),
        _ => numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()[..bytes])),
    }
}

fn put_bits(out: &mut Vec<u8>, numbers: &[i64]) {
    out.extend(numbers.chunks(8).map(|eight| eight.iter().rev().fold(0, |bits, bit| bits << 1 | u8::from(*bit != 0))));
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// Append DELTA_BINARY_PACKED: blocks of 128 differences, in four groups of 32 with a width each.
fn put_deltas(out: &mut Vec<u8>, numbers: &[i64]) {
    const BLOCK: usize = 128;
    const GROUP: usize = 32;
    put_varint(out, BLOCK as u64);
    put_varint(out, (BLOCK / GROUP) as u64);
    put_varint(out, numbers.len() as u64);
    put_zigzag(out, numbers.first().copied().unwrap_or(0));
    let mut deltas = [0i64; BLOCK];
    for window in 0..numbers.len().saturating_sub(1).div_ceil(BLOCK) {
        let pairs = numbers[window * BLOCK..].windows(2).take(BLOCK);
        let count = pairs.len();
        for (delta, pair) in deltas.iter_mut().zip(pairs) {
            *delta = pair[1].wrapping_sub(pair[0]);
        }
        let least = deltas[..count].iter().copied().min().unwrap_or(0);
        deltas[count..].fill(least);
        put_zigzag(out, least);
        let offsets = deltas.map(|delta| delta.wrapping_sub(least).cast_unsigned());
        let used = count.div_ceil(GROUP);
        let width = |group: &[u64]| 64 - group.iter().fold(0, |all, offset| all | offset).leading_zeros();
        out.extend(offsets.chunks(GROUP).map(|group| width(group) as u8));
        for group in offsets.chunks(GROUP).take(used) {
            pack(out, group, width(group));
        }
    }
}

/// Append numbers of `width` bits, least significant bit first.
fn pack(out: &mut Vec<u8>, numbers: &[u64], width: u32) {
    let (mut held, mut bits) = (0u128, 0);
    for number in numbers {
        held |= u128::from(*number) << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&(held as u64).to_le_bytes());
            held >>= 64;
            bits -= 64;
        }
    }
    out.extend_from_slice(&(held as u64).to_le_bytes()[..bits.div_ceil(8) as usize]);
}
