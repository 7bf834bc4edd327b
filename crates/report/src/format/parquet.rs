//! The tables of [`columns`], as Parquet.

use std::sync::Arc;

use dualq_worlds::Results;
use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::columns::{self, Column, Values};
use crate::report::Report;

/// The figures of each run: [`columns::summary`].
///
/// # Errors
/// If the library refuses a name, as of a setting that is there twice.
pub fn summary(report: &Report<'_>) -> Result<Vec<u8>, ParquetError> {
    write(columns::summary(report), report.results)
}

/// The series: [`columns::series`].
///
/// # Errors
/// As [`summary`].
pub fn series(results: &Results) -> Result<Vec<u8>, ParquetError> {
    write(columns::series(results.runs()), results)
}

/// The file, with what made it in its metadata.
fn write(columns: Vec<Column>, results: &Results) -> Result<Vec<u8>, ParquetError> {
    let field = |Column { name, values }: &Column| {
        let (physical, repetition) = match values {
            Values::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
            Values::Whole(_) => (Physical::INT64, Repetition::OPTIONAL),
            Values::Number(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        let builder = match values {
            Values::Text(_) => builder
                .with_converted_type(ConvertedType::UTF8)
                .with_logical_type(Some(LogicalType::String)),
            _ => builder,
        };
        builder.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let schema = Arc::new(Type::group_type_builder("dualq").with_fields(fields).build()?);
    let origin = results.origin.clone().unwrap_or_default();
    let said = [
        ("dualq.name", &results.name),
        ("dualq.program", &origin.program),
        ("dualq.command", &origin.command),
    ];
    let said = said.map(|(key, value)| KeyValue::new(key.to_owned(), value.clone()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(said.to_vec()));
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    let mut columns = columns.into_iter();
    while let (Some(mut to), Some(Column { values, .. })) = (group.next_column()?, columns.next()) {
        match values {
            Values::Text(list) => {
                let list: Vec<ByteArray> =
                    list.iter().map(|text| ByteArray::from(text.as_str())).collect();
                to.typed::<ByteArrayType>().write_batch(&list, None, None)?;
            }
            Values::Whole(list) => {
                let (there, levels) = split(&list);
                to.typed::<Int64Type>().write_batch(&there, Some(&levels), None)?;
            }
            Values::Number(list) => {
                let (there, levels) = split(&list);
                to.typed::<DoubleType>().write_batch(&there, Some(&levels), None)?;
            }
        }
        to.close()?;
    }
    group.close()?;
    writer.into_inner()
}

/// The values that are there, and for each place whether it has one.
fn split<T: Copy>(list: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    (
        list.iter().flatten().copied().collect(),
        list.iter().map(|value| i16::from(value.is_some())).collect(),
    )
}
