//! Columns for data frames, over Arrow's C interface: pyarrow, pandas and polars read them where they are.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use dualq_report::columns::{Column, Values};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::RunError;

/// A table: columns of one length, whose names have the units.
#[pyclass(frozen, module = "dualq")]
pub(crate) struct Table(RecordBatch);

impl Table {
    /// Numbers that are all there are not copied.
    pub(crate) fn of(columns: Vec<Column>) -> PyResult<Self> {
        let mut fields = Vec::with_capacity(columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(columns.len());
        for Column { name, values } in columns {
            let (array, kind): (ArrayRef, _) = match values {
                Values::Text(list) => (Arc::new(StringArray::from(list)), DataType::Utf8),
                Values::Whole(list) => (Arc::new(Int64Array::from(list)), DataType::Int64),
                Values::Number(list) => {
                    let all: Option<Vec<f64>> = list.iter().copied().collect();
                    let array = all.map_or_else(|| Float64Array::from(list), Float64Array::from);
                    (Arc::new(array), DataType::Float64)
                }
            };
            fields.push(Field::new(name, kind, true));
            arrays.push(array);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        batch.map(Self).map_err(|error| RunError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<dualq.Table of {} rows: {}>", self.0.num_rows(), self.names().join(", "))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let column = self.0.column_by_name(name).ok_or_else(|| {
            let names = self.names().join(", ");
            PyKeyError::new_err(format!("no column {name:?}; there are {names}"))
        })?;
        let any = column.as_any();
        if let Some(numbers) = any.downcast_ref::<Float64Array>() {
            return numbers.iter().collect::<Vec<_>>().into_pyobject(py);
        }
        if let Some(whole) = any.downcast_ref::<Int64Array>() {
            return whole.iter().collect::<Vec<_>>().into_pyobject(py);
        }
        let words = any.downcast_ref::<StringArray>().map(|words| words.iter().collect::<Vec<_>>());
        words.into_pyobject(py)
    }

    /// Results are smaller than their columns, and have them all.
    fn __reduce__(&self) -> PyResult<()> {
        let message = "a dualq.Table is not pickled; send the results that it is of, or to_arrow()";
        Err(PyTypeError::new_err(message))
    }

    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_arrow(slf)?.call_method0("to_pandas")
    }

    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// The Arrow PyCapsule interface: the consumer's own schema is not asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
