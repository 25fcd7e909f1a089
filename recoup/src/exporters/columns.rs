//! Columns: rows as a Parquet file, whose columns follow from the format's [`Shape`].
//!
//! Nested lists and objects are taken apart into columns with repetition and definition levels, as the format
//! has them, so no arrow is needed. Rows are kept until a row group is full; the same rows give the same bytes.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use serde_json::Value;

use super::shape::{Key, Shape};

/// Bytes of text after which a row group is written.
const GROUP_BYTES: usize = 16 << 20;

/// A Parquet file that is being written.
pub(super) struct ColumnFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    keys: &'static [Key],
    columns: Vec<Column>,
    bytes: usize,
}

impl<W: Write + Send> ColumnFile<W> {
    /// Begins a file for rows of a shape, which must be an object.
    pub(super) fn new(file: W, shape: &Shape) -> Result<Self> {
        let Shape::Object(keys) = *shape else {
            return Err(ParquetError::General("a row is an object".to_owned()));
        };
        let fields = keys.iter().map(field).collect::<Result<_>>()?;
        let schema = Arc::new(Type::group_type_builder("row").with_fields(fields).build()?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut columns = Vec::new();
        for key in keys {
            add_columns(&key.shape, &mut columns);
        }
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        Ok(Self { writer, keys, columns, bytes: 0 })
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &Value) -> Result<()> {
        let mut next = 0;
        for key in self.keys {
            self.bytes += shred(key, row.get(key.name), Level::default(), &mut self.columns, &mut next);
        }
        if self.bytes >= GROUP_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(mut writer) = group.next_column()? else { break };
            let (definitions, repetitions) = (Some(&column.definitions[..]), Some(&column.repetitions[..]));
            match &column.values {
                Values::Text(values) => {
                    writer.typed::<ByteArrayType>().write_batch(values, definitions, repetitions)?;
                }
                Values::Flags(values) => {
                    writer.typed::<BoolType>().write_batch(values, definitions, repetitions)?;
                }
                Values::Integers(values) => {
                    writer.typed::<Int64Type>().write_batch(values, definitions, repetitions)?;
                }
            }
            writer.close()?;
            column.clear();
        }
        group.close()?;
        self.bytes = 0;
        Ok(())
    }

    /// Writes what is left and gives the file back.
    pub(super) fn finish(mut self) -> Result<W> {
        if self.columns.first().is_some_and(|column| !column.definitions.is_empty()) {
            self.flush()?;
        }
        self.writer.into_inner()
    }
}

/// Values of one column of a row group, with their levels.
struct Column {
    values: Values,
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Flags(Vec<bool>),
    Integers(Vec<i64>),
}

impl Column {
    fn clear(&mut self) {
        match &mut self.values {
            Values::Text(values) => values.clear(),
            Values::Flags(values) => values.clear(),
            Values::Integers(values) => values.clear(),
        }
        self.definitions.clear();
        self.repetitions.clear();
    }
}

/// How deep a value lies: optional and repeated fields above it that are there, lists above it that it
/// continues, and lists above it in all.
#[derive(Clone, Copy, Default)]
struct Level {
    definition: i16,
    repetition: i16,
    lists: i16,
}

fn field(key: &Key) -> Result<TypePtr> {
    let repetition = if key.is_needed { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    named(key.name, &key.shape, repetition)
}

fn named(name: &str, shape: &Shape, repetition: Repetition) -> Result<TypePtr> {
    let leaf = |physical| Type::primitive_type_builder(name, physical).with_repetition(repetition);
    let built = match shape {
        Shape::Text | Shape::Word(_) | Shape::Any | Shape::Map | Shape::Either(_) => {
            leaf(PhysicalType::BYTE_ARRAY)
                .with_logical_type(Some(LogicalType::String))
                .with_converted_type(ConvertedType::UTF8)
                .build()?
        }
        Shape::Flag => leaf(PhysicalType::BOOLEAN).build()?,
        Shape::Integer => leaf(PhysicalType::INT64).build()?,
        Shape::Object(keys) => Type::group_type_builder(name)
            .with_repetition(repetition)
            .with_fields(keys.iter().map(field).collect::<Result<_>>()?)
            .build()?,
        Shape::List(of) => {
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![named("element", of, Repetition::REQUIRED)?])
                .build()?;
            Type::group_type_builder(name)
                .with_repetition(repetition)
                .with_logical_type(Some(LogicalType::List))
                .with_converted_type(ConvertedType::LIST)
                .with_fields(vec![Arc::new(list)])
                .build()?
        }
    };
    Ok(Arc::new(built))
}

fn add_columns(shape: &Shape, columns: &mut Vec<Column>) {
    let values = match shape {
        Shape::Object(keys) => return keys.iter().for_each(|key| add_columns(&key.shape, columns)),
        Shape::List(of) => return add_columns(of, columns),
        Shape::Flag => Values::Flags(Vec::new()),
        Shape::Integer => Values::Integers(Vec::new()),
        Shape::Text | Shape::Word(_) | Shape::Any | Shape::Map | Shape::Either(_) => Values::Text(Vec::new()),
    };
    columns.push(Column { values, definitions: Vec::new(), repetitions: Vec::new() });
}

/// Adds the member of an object to its columns, from `next` on, and moves `next` behind them; returns the
/// bytes that it takes.
fn shred(key: &Key, value: Option<&Value>, at: Level, columns: &mut [Column], next: &mut usize) -> usize {
    match value {
        None if !key.is_needed => absent(&key.shape, at, columns, next),
        None => present(&key.shape, &Value::Null, at, columns, next),
        Some(value) => {
            let definition = at.definition + i16::from(!key.is_needed);
            present(&key.shape, value, Level { definition, ..at }, columns, next)
        }
    }
}

fn present(shape: &Shape, value: &Value, at: Level, columns: &mut [Column], next: &mut usize) -> usize {
    match shape {
        Shape::Object(keys) => {
            keys.iter().map(|key| shred(key, value.get(key.name), at, columns, next)).sum()
        }
        Shape::List(of) => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            if items.is_empty() {
                return absent(of, at, columns, next);
            }
            let first = *next;
            let mut bytes = 0;
            for (index, item) in items.iter().enumerate() {
                *next = first;
                let lists = at.lists + 1;
                let repetition = if index == 0 { at.repetition } else { lists };
                let level = Level { definition: at.definition + 1, repetition, lists };
                bytes += present(of, item, level, columns, next);
            }
            bytes
        }
        _ => {
            let Some(column) = columns.get_mut(*next) else { return 0 };
            *next += 1;
            column.definitions.push(at.definition);
            column.repetitions.push(at.repetition);
            match &mut column.values {
                Values::Flags(values) => values.push(value.as_bool().unwrap_or_default()),
                Values::Integers(values) => values.push(value.as_i64().unwrap_or_default()),
                Values::Text(values) => {
                    let text = match (shape, value) {
                        (Shape::Text | Shape::Word(_), Value::String(text)) => text.clone(),
                        _ => value.to_string(),
                    };
                    let bytes = text.len();
                    values.push(ByteArray::from(text.into_bytes()));
                    return bytes + size_of::<Level>();
                }
            }
            size_of::<Level>()
        }
    }
}

/// Marks all columns of a shape as holding nothing here.
fn absent(shape: &Shape, at: Level, columns: &mut [Column], next: &mut usize) -> usize {
    match shape {
        Shape::Object(keys) => keys.iter().map(|key| absent(&key.shape, at, columns, next)).sum(),
        Shape::List(of) => absent(of, at, columns, next),
        _ => {
            if let Some(column) = columns.get_mut(*next) {
                column.definitions.push(at.definition);
                column.repetitions.push(at.repetition);
            }
            *next += 1;
            size_of::<Level>()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use serde_json::{Value, json};

    use super::ColumnFile;
    use crate::exporters::shape::{Shape, key, optional};

    const ROW: Shape = Shape::Object(&[
        key("id", Shape::Text),
        key(
            "messages",
            Shape::List(&Shape::Object(&[
                key("role", Shape::Text),
                optional(
                    "calls",
                    Shape::List(&Shape::Object(&[key("name", Shape::Text), key("arguments", Shape::Any)])),
                ),
            ])),
        ),
        optional("wanted", Shape::Flag),
        optional("count", Shape::Integer),
    ]);

    fn written(rows: &[Value]) -> Vec<u8> {
        let mut file = ColumnFile::new(Vec::new(), &ROW).unwrap();
        for row in rows {
            file.push(row).unwrap();
        }
        file.finish().unwrap()
    }

    fn reader(bytes: &[u8]) -> SerializedFileReader<std::fs::File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        SerializedFileReader::new(file).unwrap()
    }

    #[test]
    fn nested_rows_come_back_as_they_were() {
        let rows = [
            json!({"id": "a", "messages": [
                {"role": "user"},
                {"role": "assistant", "calls": [{"name": "x", "arguments": {"n": 1}}, {"name": "y", "arguments": null}]},
                {"role": "assistant", "calls": []},
            ], "wanted": true}),
            json!({"id": "b", "messages": [], "count": -3}),
        ];
        let bytes = written(&rows);
        assert_eq!(bytes, written(&rows), "the same bytes");
        let read: Vec<Value> =
            reader(&bytes).get_row_iter(None).unwrap().map(|row| row.unwrap().to_json_value()).collect();
        assert_eq!(
            read,
            [
                json!({"id": "a", "messages": [
                    {"role": "user", "calls": null},
                    {"role": "assistant", "calls": [{"name": "x", "arguments": "{\"n\":1}"}, {"name": "y", "arguments": "null"}]},
                    {"role": "assistant", "calls": []},
                ], "wanted": true, "count": null}),
                json!({"id": "b", "messages": [], "wanted": null, "count": -3}),
            ]
        );
    }

    #[test]
    fn a_file_without_rows_is_a_file() {
        assert_eq!(reader(&written(&[])).metadata().file_metadata().num_rows(), 0);
    }
}
