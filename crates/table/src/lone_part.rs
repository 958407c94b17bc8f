//! A Parquet file of a table that belongs to no recording.json. Its name and footer describe it, so
//! that many processes can write into one folder without a shared list.

use std::{fs::File, io::BufWriter, path::PathBuf};

use parquet::file::metadata::KeyValue;

use crate::{
    Batch, Folder, Part, TableError,
    recording::{HashingFile, PartWriter, append_batch, part_writer},
    rows::Columns,
    schema,
};

/// A part that is being written, under a name that readers ignore.
#[derive(Debug)]
pub struct LonePart {
    path: PathBuf,
    name: String,
    rows: u64,
    writer: PartWriter,
}

impl LonePart {
    /// Create a part of the table of `C`.
    ///
    /// # Errors
    /// [`TableError`]: the name is taken, or writing fails.
    pub fn create<C: Columns>(folder: &Folder, name: &str) -> Result<LonePart, TableError> {
        let path = folder.path().join(name);
        let file: File = folder.create_file(name).map_err(|error| TableError::Io(path.clone(), error))?;
        let def = schema::table(C::TABLE);
        let sink = BufWriter::with_capacity(1 << 18, HashingFile::new(file));
        let writer = part_writer(def, sink).map_err(|error| TableError::Parquet(path.clone(), error))?;
        Ok(LonePart { path, name: name.into(), rows: 0, writer })
    }

    /// Add a row group; the batch is empty afterwards.
    ///
    /// # Errors
    /// [`TableError`] if writing fails.
    pub fn write<C: Columns>(&mut self, batch: &mut Batch<C>) -> Result<(), TableError> {
        let rows = append_batch(&mut self.writer, batch);
        self.rows += rows.map_err(|error| TableError::Parquet(self.path.clone(), error))?;
        Ok(())
    }

    /// Write the footer, with this metadata. The part is durable then, under the name that it was
    /// created with.
    ///
    /// # Errors
    /// [`TableError`] if writing fails.
    pub fn finish(mut self, metadata: &[(&str, String)]) -> Result<Part, TableError> {
        for (key, value) in metadata {
            self.writer.append_key_value_metadata(KeyValue::new((*key).to_string(), value.clone()));
        }
        let path = self.path;
        let sink = self.writer.into_inner().map_err(|error| TableError::Parquet(path.clone(), error))?;
        let file = sink.into_inner().map_err(|error| TableError::Io(path.clone(), error.into_error()))?;
        let (bytes, sha256) = file.finish().map_err(|error| TableError::Io(path, error))?;
        Ok(Part { file: self.name, rows: self.rows, bytes, sha256 })
    }
}

/// The value in the footer of a part under this key.
///
/// # Errors
/// [`TableError`]: the file cannot be read, or is no Parquet file.
pub fn footer_value(file: File, path: &std::path::Path, key: &str) -> Result<Option<String>, TableError> {
    use parquet::file::{reader::FileReader, serialized_reader::SerializedFileReader};
    let reader = SerializedFileReader::new(file).map_err(|error| TableError::Parquet(path.into(), error))?;
    let values = reader.metadata().file_metadata().key_value_metadata();
    Ok(values.into_iter().flatten().find(|entry| entry.key == key).and_then(|entry| entry.value.clone()))
}
