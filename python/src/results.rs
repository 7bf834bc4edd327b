//! What came of scenarios, as Python sees it.

use std::sync::Arc;

use dualq_report::{Report, Style, columns, csv, html, json, svg, text};
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyIterator, PyList, PySlice, PyString};

use crate::PROGRAM;
use crate::table::Table;

/// What came of a scenario or of all its combinations, in all worlds with all seeds.
#[pyclass(frozen, module = "dualq", sequence)]
pub(crate) struct Results(Arc<dualq_worlds::Results>);

impl Results {
    pub(crate) fn of(results: dualq_worlds::Results) -> Self {
        Self(Arc::new(results))
    }

    fn run(&self, number: usize) -> Run {
        Run { results: Arc::clone(&self.0), number, outcome: PyOnceLock::new() }
    }

    fn at(&self, index: isize) -> PyResult<Run> {
        let count = self.0.runs().len();
        let number = if index < 0 { index.checked_add_unsigned(count) } else { Some(index) };
        let number = number.and_then(|number| usize::try_from(number).ok());
        match number.filter(|number| *number < count) {
            Some(number) => Ok(self.run(number)),
            None => Err(PyIndexError::new_err(format!("there are {count} runs"))),
        }
    }

    fn report(&self) -> Report<'_> {
        Report::of(&self.0)
    }
}

#[pymethods]
impl Results {
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        let read = serde_json::from_str(text);
        read.map(Self::of)
            .map_err(|error| PyValueError::new_err(format!("not a document of dualq run: {error}")))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn about(&self) -> &str {
        &self.0.about
    }

    #[getter]
    fn published(&self) -> Vec<String> {
        self.0.published.clone()
    }

    #[getter]
    fn worlds(&self) -> Vec<String> {
        self.0.worlds().map(|(name, _)| name.to_owned()).collect()
    }

    #[getter]
    fn seeds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let seeds = self.0.seeds();
        let range = py.import("builtins")?.getattr("range")?;
        range.call1((seeds.first(), u128::from(seeds.last()) + 1))
    }

    fn __len__(&self) -> usize {
        self.0.runs().len()
    }

    /// A run, or those of a slice as a list.
    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        let Ok(slice) = index.cast::<PySlice>() else {
            return Ok(Bound::new(py, self.at(index.extract()?)?)?.into_any());
        };
        let numbers = py.import("builtins")?.getattr("range")?.call1((self.0.runs().len(),))?;
        let numbers: Vec<usize> = numbers.get_item(slice)?.extract()?;
        let runs: Vec<Run> = numbers.into_iter().map(|number| self.run(number)).collect();
        Ok(PyList::new(py, runs)?.into_any())
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyIterator>> {
        let runs = (0..slf.get().0.runs().len()).map(|number| slf.get().run(number));
        PyList::new(slf.py(), runs.collect::<Vec<_>>())?.try_iter()
    }

    fn __repr__(&self) -> String {
        format!("<dualq.Results {:?}: {} runs>", self.0.name, self.0.runs().len())
    }

    fn __str__(&self) -> String {
        self.text(None)
    }

    #[pyo3(signature = (width=None))]
    fn text(&self, width: Option<usize>) -> String {
        text::write(&self.report(), &Style { width, ..Style::default() })
    }

    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let report = self.report();
        let make = py.import("dualq._figures")?.getattr("of")?;
        let rows = report.figures.rows.iter().map(|row| {
            let settings = PyDict::new(py);
            for (what, value) in &row.settings.0 {
                settings.set_item(what, value)?;
            }
            let figures = row.figures(&report.figures.columns).into_iter().map(|figure| {
                let unit = figure.unit.symbol();
                let numbers = (figure.mean, figure.deviation, figure.min, figure.max);
                (figure.group, figure.name, unit, figure.seeds, numbers)
            });
            Ok((settings, row.world.clone(), figures.collect::<Vec<_>>()))
        });
        make.call1((rows.collect::<PyResult<Vec<_>>>()?,))
    }

    fn summary(&self) -> PyResult<Table> {
        Table::of(columns::summary(&self.report()))
    }

    fn series(&self) -> PyResult<Table> {
        Table::of(columns::series(self.0.runs()))
    }

    fn to_json(&self) -> String {
        json::write(&self.report())
    }

    fn to_csv(&self) -> String {
        csv::write(&self.report())
    }

    fn to_html(&self) -> String {
        html::write(&[self.report()], PROGRAM, None)
    }

    fn pictures(&self) -> Vec<(String, String)> {
        let pictures = svg::pictures(&self.report());
        pictures.into_iter().map(|picture| (picture.name.into_owned(), picture.svg)).collect()
    }

    fn _repr_html_(&self) -> Option<String> {
        svg::pictures(&self.report()).into_iter().next().map(|picture| picture.svg)
    }

    /// Pickled as its document, so that it comes back from other processes.
    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, (String,))> {
        let read = slf.get_type().getattr("from_json")?.unbind();
        Ok((read, (slf.get().to_json(),)))
    }
}

/// One run, and what came of it.
#[pyclass(frozen, module = "dualq")]
pub(crate) struct Run {
    results: Arc<dualq_worlds::Results>,
    number: usize,
    outcome: PyOnceLock<Py<PyAny>>,
}

impl Run {
    fn inner(&self) -> &dualq_worlds::Run {
        &self.results.runs()[self.number]
    }
}

#[pymethods]
impl Run {
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let settings = PyDict::new(py);
        for (what, value) in &self.inner().settings.0 {
            settings.set_item(what, value)?;
        }
        Ok(settings)
    }

    #[getter]
    fn world(&self) -> &str {
        &self.inner().world
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.inner().seed
    }

    #[getter]
    fn kernel(&self) -> Option<&str> {
        self.inner().kernel.as_deref()
    }

    #[getter]
    fn scenario<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.inner().scenario)
    }

    #[getter]
    fn outcome<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.outcome.get_or_try_init(py, || made(py, &self.inner().outcome))?;
        Ok(made.bind(py).clone())
    }

    fn series(&self) -> PyResult<Table> {
        Table::of(columns::series(std::slice::from_ref(self.inner())))
    }

    /// Pickled as the only one of its results.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Results, usize))> {
        let of = &self.results;
        let (name, about, published) = (of.name.clone(), of.about.clone(), of.published.clone());
        let run = vec![self.inner().clone()];
        let alone = dualq_worlds::Results::of_runs(name, about, published, run);
        let alone = alone.map_err(PyValueError::new_err)?;
        Ok((py.import("operator")?.getattr("getitem")?, (Results::of(alone), 0)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let run = self.inner();
        let settings = self.settings(py)?.repr()?;
        Ok(format!("<dualq.Run {settings} in {} with seed {}>", run.world, run.seed))
    }
}

/// An outcome as an object with units.
pub(crate) fn made(py: Python<'_>, outcome: &dualq_scenario::Outcome) -> PyResult<Py<PyAny>> {
    let read = loads(py, outcome)?;
    py.import("dualq.outcome")?.getattr("_of")?.call1((read,)).map(Bound::unbind)
}

/// A value with the names that it has in documents.
pub(crate) fn loads<'py>(
    py: Python<'py>,
    value: &impl serde::Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value);
    let text = text.map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.import("json")?.getattr("loads")?.call1((PyString::new(py, &text),))
}
