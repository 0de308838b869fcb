//! Writes a Parquet file column by column, in row groups of bounded size.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// How many rows a row group has at most.
const MAX_GROUP_ROWS: usize = 100_000;

/// The size of texts at which a row group ends.
const MAX_GROUP_BYTES: usize = 32 << 20;

/// The level of zstd.
const COMPRESSION_LEVEL: i32 = 3;

/// An error while writing a Parquet file.
#[derive(Debug, thiserror::Error)]
#[error("could not write {path}: {reason}", path = path.display())]
pub struct ParquetError {
    /// The file.
    path: PathBuf,
    reason: String,
}

/// The value of a row in one column.
pub(crate) enum CellValue<'a> {
    Text(Option<&'a str>),
    Integer(Option<i64>),
    Number(Option<f64>),
}

/// The values of one column in a row group. Columns are optional: `present` has 0 for a missing value.
struct ColumnValues {
    values: TypedValues,
    present: Vec<i16>,
}

enum TypedValues {
    Texts(Vec<ByteArray>),
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
}

/// Writes rows to a file.
pub(crate) struct TableWriter {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    columns: Vec<ColumnValues>,
    rows: usize,
    bytes: usize,
}

impl fmt::Debug for TableWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableWriter").field("path", &self.path).finish_non_exhaustive()
    }
}

impl TableWriter {
    /// Starts a file with the columns of a schema, in the text form of Parquet. All must be optional.
    pub(crate) fn create(path: &Path, schema: &str) -> Result<Self, ParquetError> {
        let failed = |reason: String| ParquetError { path: path.to_owned(), reason };
        let file = File::create(path).map_err(|error| failed(error.to_string()))?;
        let schema = parse_message_type(schema).map_err(|error| failed(error.to_string()))?;
        let level = ZstdLevel::try_new(COMPRESSION_LEVEL).unwrap_or_default();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_created_by(concat!("steno ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { path: path.to_owned(), writer, columns: Vec::new(), rows: 0, bytes: 0 })
    }

    /// Adds a row. All rows have the values of all columns, in the order of the schema.
    pub(crate) fn add_row(&mut self, row: &[CellValue<'_>]) -> Result<(), ParquetError> {
        if self.columns.is_empty() {
            self.columns = row.iter().map(ColumnValues::for_cell).collect();
        }
        for (column, cell) in self.columns.iter_mut().zip(row) {
            self.bytes += column.push(cell);
        }
        self.rows += 1;
        match self.rows >= MAX_GROUP_ROWS || self.bytes >= MAX_GROUP_BYTES {
            true => self.write_group(),
            false => Ok(()),
        }
    }

    /// Writes the rest and the end of the file.
    pub(crate) fn finish(mut self) -> Result<(), ParquetError> {
        self.write_group()?;
        let path = self.path.clone();
        let finished = self.writer.close();
        finished.map(drop).map_err(|error| ParquetError { path, reason: error.to_string() })
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        if self.rows == 0 {
            return Ok(());
        }
        let written = self.try_write_group();
        written
            .map_err(|error| ParquetError { path: self.path.clone(), reason: error.to_string() })?;
        self.columns.iter_mut().for_each(ColumnValues::clear);
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }

    fn try_write_group(&mut self) -> parquet::errors::Result<()> {
        let mut group = self.writer.next_row_group()?;
        let mut columns = self.columns.iter();
        while let Some(mut column) = group.next_column()? {
            let Some(ColumnValues { values, present }) = columns.next() else { break };
            let levels = Some(present.as_slice());
            match (column.untyped(), values) {
                (ColumnWriter::ByteArrayColumnWriter(writer), TypedValues::Texts(texts)) => {
                    writer.write_batch(texts, levels, None)?
                }
                (ColumnWriter::Int64ColumnWriter(writer), TypedValues::Integers(integers)) => {
                    writer.write_batch(integers, levels, None)?
                }
                (ColumnWriter::DoubleColumnWriter(writer), TypedValues::Numbers(numbers)) => {
                    writer.write_batch(numbers, levels, None)?
                }
                _ => unreachable!("a row has values of the types in its schema"),
            };
            column.close()?;
        }
        group.close().map(drop)
    }
}

impl ColumnValues {
    fn for_cell(cell: &CellValue<'_>) -> Self {
        let values = match cell {
            CellValue::Text(_) => TypedValues::Texts(Vec::new()),
            CellValue::Integer(_) => TypedValues::Integers(Vec::new()),
            CellValue::Number(_) => TypedValues::Numbers(Vec::new()),
        };
        Self { values, present: Vec::new() }
    }

    /// Adds a value. Returns its size.
    fn push(&mut self, cell: &CellValue<'_>) -> usize {
        let is_present = match (&mut self.values, cell) {
            (TypedValues::Texts(texts), CellValue::Text(Some(text))) => {
                texts.push(ByteArray::from(*text));
                self.present.push(1);
                return text.len();
            }
            (TypedValues::Integers(integers), CellValue::Integer(value)) => {
                integers.extend(value);
                value.is_some()
            }
            (TypedValues::Numbers(numbers), CellValue::Number(value)) => {
                numbers.extend(value);
                value.is_some()
            }
            _ => false,
        };
        self.present.push(i16::from(is_present));
        8
    }

    fn clear(&mut self) {
        self.present.clear();
        match &mut self.values {
            TypedValues::Texts(texts) => texts.clear(),
            TypedValues::Integers(integers) => integers.clear(),
            TypedValues::Numbers(numbers) => numbers.clear(),
        }
    }
}
