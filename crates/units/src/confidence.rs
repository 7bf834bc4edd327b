//! How well a mean is known.

/// Student's t for an interval of 95 %, by degrees of freedom from 1 on.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Student's t for an interval that holds the mean of so many samples with 95 % confidence; of two or more.
#[must_use]
pub fn student(samples: usize) -> f64 {
    STUDENT.get(samples.saturating_sub(2)).copied().unwrap_or(2.0)
}
