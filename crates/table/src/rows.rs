//! Typed rows, made by the build from `knowhow/tables`: a writer names columns, and the compiler knows them.
//!
//! There are two ways to write a table. Most are written as rows: a struct with a field for each column, given to
//! [`Recording::write_rows`](crate::Recording::write_rows), or collected in a [`Batch`](crate::Batch). The largest ones are encoded in blocks by a
//! [`GroupEncoder`](crate::GroupEncoder), from rows in whatever form the writer has them: a trait with a method for each column says how they are
//! read, so that no row is copied.
//!
//! A column that is missing, or not in the file, is an error of the compiler.

use std::{borrow::Cow, mem::take};

pub use crate::columns::Column;
use crate::{
    Facts, NULL,
    columns::{CodedTexts, Plain, Texts},
};

/// A row of a table. Text may be borrowed: it is copied into the column.
pub trait Row {
    /// What its table is made of.
    type Columns: Columns;

    /// Add it after those that are there.
    fn add_to(&self, columns: &mut Self::Columns);
}

/// The columns of a table.
pub trait Columns: Default {
    /// The table.
    const TABLE: &'static str;

    /// What was added, in the order of the table's file. Starts over.
    fn finish(&mut self) -> Vec<Column>;
}

/// The columns of a table of numbers and texts, which are read from rows of type `R` while blocks of them are encoded.
pub trait BlockColumns<R>: Columns {
    /// The values of one column.
    fn fill<'r>(column: ColumnNumber, rows: impl Iterator<Item = &'r R> + Clone, fill: &mut Fill<'_>)
    where
        R: 'r;
}

/// The columns of a table of which `W` knows the texts.
pub trait BlockTexts<W>: Columns {
    /// What a number stands for in a column of texts.
    fn text(texts: &W, column: ColumnNumber, number: usize) -> &str;
}

/// Which column of its table: the build makes a constant for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnNumber(pub(crate) usize);

impl ColumnNumber {
    /// It was asked of the wrong table.
    fn is_of_no(self, table: &str) -> ! {
        panic!("column {} of {table}", self.0)
    }
}

/// Where the values of a column of a block go.
pub struct Fill<'a> {
    pub(crate) values: &'a mut Vec<i64>,
    /// In place of values: what all rows have.
    pub(crate) all: Option<i64>,
    /// Whether to look if rows agree.
    pub(crate) may_agree: bool,
}

impl Fill<'_> {
    /// Take a value of each row.
    fn rows<'r, R: 'r, V: Value>(&mut self, rows: impl Iterator<Item = &'r R> + Clone, value: impl Fn(&R) -> V) {
        let number = |row: &R| value(row).number();
        if self.may_agree {
            let first = rows.clone().next().map_or(NULL, number);
            // Columns for rare things have the same value throughout.
            if rows.clone().all(|row| number(row) == first) {
                self.all = Some(first);
                return;
            }
        }
        self.values.extend(rows.map(number));
    }
}

/// What a column of numbers, truth values or texts may hold.
trait Value {
    /// As the encoder takes it.
    fn number(self) -> i64;
}

impl Value for i64 {
    fn number(self) -> i64 {
        self
    }
}

impl Value for i32 {
    fn number(self) -> i64 {
        i64::from(self)
    }
}

impl Value for bool {
    fn number(self) -> i64 {
        i64::from(self)
    }
}

/// The number of a text.
impl Value for usize {
    fn number(self) -> i64 {
        self as i64
    }
}

impl<V: Value> Value for Option<V> {
    fn number(self) -> i64 {
        self.map_or(NULL, V::number)
    }
}

include!(concat!(env!("OUT_DIR"), "/rows.rs"));
