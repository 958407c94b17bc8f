//! Columns of rows that are not written yet, encoded by the parquet crate.
//!
//! Its writers are used one type at a time, and without Arrow: Arrow's own writer contains code for
//! every type that a column could have, which is megabytes, and a table has five types.

use bytes::Bytes;
use parquet::{
    column::writer::{ColumnCloseResult, ColumnWriterImpl},
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type},
    errors::Result,
    file::{
        properties::WriterPropertiesPtr,
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Number of texts passed to the encoder at a time. A multiple of 1024, the number of values after
/// which the encoder checks whether a page is full.
const TEXTS_PER_PIECE: usize = 8192;

/// A column of a batch.
#[derive(Debug)]
pub struct Column(Values);

#[derive(Debug)]
enum Values {
    Int64(Plain<i64>),
    Int32(Plain<i32>),
    Float64(Plain<f64>),
    Bool(Plain<bool>),
    Text(Texts),
    Coded(CodedTexts),
}

impl Column {
    /// Encode the column chunk as it will be in the file, except for its offset.
    pub(crate) fn encode(self, column: ColumnDescPtr, properties: WriterPropertiesPtr) -> Result<(Bytes, ColumnCloseResult)> {
        match self.0 {
            Values::Int64(values) => values.encode::<Int64Type>(column, properties),
            Values::Int32(values) => values.encode::<Int32Type>(column, properties),
            Values::Float64(values) => values.encode::<DoubleType>(column, properties),
            Values::Bool(values) => values.encode::<BoolType>(column, properties),
            Values::Text(texts) => texts.encode(column, properties),
            Values::Coded(texts) => texts.encode(column, properties),
        }
    }

    /// The values as JSON.
    pub(crate) fn json(self) -> Value {
        match self.0 {
            Values::Int64(values) => values.json(),
            Values::Int32(values) => values.json(),
            Values::Float64(values) => values.json(),
            Values::Bool(values) => values.json(),
            Values::Text(Texts { texts, ends, levels }) => {
                let starts = std::iter::once(&0).chain(&ends);
                json(starts.zip(&ends).map(|(start, end)| texts[*start..*end].into()), &levels)
            }
            Values::Coded(CodedTexts { codes, levels, texts, .. }) => {
                json(codes.into_iter().map(|code| texts[code as usize].as_str().into()), &levels)
            }
        }
    }
}

/// Definition levels: empty if the column has no NULL, otherwise 0 for NULL and 1 for a value.
type Levels = Vec<i16>;

fn levels_or_none(levels: &[i16]) -> Option<&[i16]> {
    (!levels.is_empty()).then_some(levels)
}

fn json(mut present: impl Iterator<Item = Value>, levels: &[i16]) -> Value {
    if levels.is_empty() {
        return Value::Array(present.collect());
    }
    let one = |level: &i16| if *level == 0 { None } else { present.next() };
    Value::Array(levels.iter().map(one).map(Option::unwrap_or_default).collect())
}

/// Encode the column chunk of the values that `add` passes to a writer of this type.
fn chunk<T: DataType>(
    column: ColumnDescPtr,
    properties: WriterPropertiesPtr,
    add: impl FnOnce(&mut ColumnWriterImpl<'_, T>) -> Result<()>,
) -> Result<(Bytes, ColumnCloseResult)> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = ColumnWriterImpl::<T>::new(column, properties, Box::new(SerializedPageWriter::new(&mut sink)));
    add(&mut writer)?;
    let closed = writer.close()?;
    Ok((sink.into_inner()?.into(), closed))
}

/// Pass the texts that are not NULL to a writer, [`TEXTS_PER_PIECE`] at a time.
fn add_texts(
    writer: &mut ColumnWriterImpl<'_, ByteArrayType>,
    mut texts: impl ExactSizeIterator<Item = ByteArray>,
    levels: &[i16],
) -> Result<()> {
    let mut piece = Vec::with_capacity(TEXTS_PER_PIECE);
    let mut add = |count: usize, levels: Option<&[i16]>| {
        piece.clear();
        piece.extend(texts.by_ref().take(count));
        writer.write_batch(&piece, levels, None).map(|_| texts.len())
    };
    if levels.is_empty() {
        while add(TEXTS_PER_PIECE, None)? > 0 {}
    }
    for levels in levels.chunks(TEXTS_PER_PIECE) {
        add(levels.iter().filter(|level| **level != 0).count(), Some(levels))?;
    }
    Ok(())
}

/// Numbers or truth values.
#[derive(Debug, Default)]
pub(crate) struct Plain<T> {
    present: Vec<T>,
    levels: Levels,
}

impl<T> Plain<T> {
    pub(crate) fn append_value(&mut self, value: T) {
        self.present.push(value);
    }

    pub(crate) fn append_option(&mut self, value: Option<T>) {
        self.levels.push(value.is_some().into());
        self.present.extend(value);
    }
}

impl<T: Copy + Into<Value>> Plain<T> {
    fn encode<D: DataType<T = T>>(
        self,
        column: ColumnDescPtr,
        properties: WriterPropertiesPtr,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        chunk::<D>(column, properties, |writer| writer.write_batch(&self.present, levels_or_none(&self.levels), None).map(|_| ()))
    }

    fn json(self) -> Value {
        json(self.present.into_iter().map(T::into), &self.levels)
    }
}

/// Texts that are mostly different.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: String,
    ends: Vec<usize>,
    levels: Levels,
}

impl Texts {
    pub(crate) fn append_value(&mut self, text: &str) {
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
    }

    pub(crate) fn append_option(&mut self, text: Option<&str>) {
        self.levels.push(text.is_some().into());
        if let Some(text) = text {
            self.append_value(text);
        }
    }

    fn encode(self, column: ColumnDescPtr, properties: WriterPropertiesPtr) -> Result<(Bytes, ColumnCloseResult)> {
        let whole = Bytes::from(self.texts.into_bytes());
        let mut start = 0;
        let texts = self.ends.into_iter().map(|end| ByteArray::from(whole.slice(std::mem::replace(&mut start, end)..end)));
        chunk(column, properties, |writer| add_texts(writer, texts, &self.levels))
    }
}

/// Texts of which many are equal, coded in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct CodedTexts {
    codes: Vec<u32>,
    levels: Levels,
    texts: Vec<String>,
    by_text: FxHashMap<String, u32>,
    last: u32,
}

impl CodedTexts {
    pub(crate) fn append_value(&mut self, text: &str) {
        // Equal texts often follow each other, so the last one is tried first.
        if self.texts.get(self.last as usize).is_none_or(|last| last != text) {
            self.last = self.by_text.get(text).copied().unwrap_or_else(|| self.add(text));
        }
        self.codes.push(self.last);
    }

    pub(crate) fn append_option(&mut self, text: Option<&str>) {
        self.levels.push(text.is_some().into());
        if let Some(text) = text {
            self.append_value(text);
        }
    }

    fn add(&mut self, text: &str) -> u32 {
        let code = u32::try_from(self.texts.len()).expect("few texts");
        self.texts.push(text.into());
        self.by_text.insert(text.into(), code);
        code
    }

    fn encode(self, column: ColumnDescPtr, properties: WriterPropertiesPtr) -> Result<(Bytes, ColumnCloseResult)> {
        let texts: Vec<ByteArray> = self.texts.into_iter().map(|text| text.into_bytes().into()).collect();
        let of_rows = self.codes.into_iter().map(|code| texts[code as usize].clone());
        chunk(column, properties, |writer| add_texts(writer, of_rows, &self.levels))
    }
}

macro_rules! of_values {
    ($($kind:ident: $values:ty,)*) => {
        $(impl From<$values> for Column {
            fn from(values: $values) -> Self {
                Column(Values::$kind(values))
            }
        })*
    };
}

of_values! {
    Int64: Plain<i64>,
    Int32: Plain<i32>,
    Float64: Plain<f64>,
    Bool: Plain<bool>,
    Text: Texts,
    Coded: CodedTexts,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_as_json_have_null_where_a_row_has_none() {
        let mut numbers = Plain::default();
        [Some(1), None, Some(3)].into_iter().for_each(|number| numbers.append_option(number));
        assert_eq!(Column::from(numbers).json(), json!([1, null, 3]));
        let mut numbers = Plain::default();
        [0.5, f64::NAN].into_iter().for_each(|number| numbers.append_value(number));
        assert_eq!(Column::from(numbers).json(), json!([0.5, null]));
        let (mut texts, mut coded) = (Texts::default(), CodedTexts::default());
        for text in [Some("a"), None, Some(""), Some("é"), Some("a")] {
            texts.append_option(text);
            coded.append_option(text);
        }
        assert_eq!(Column::from(texts).json(), json!(["a", null, "", "é", "a"]));
        assert_eq!(Column::from(coded).json(), json!(["a", null, "", "é", "a"]));
    }
}
