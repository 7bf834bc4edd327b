//! From values to places on a picture, and where the ticks are.

/// An axis: which values it shows, and between which coordinates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) least: f64,
    pub(crate) most: f64,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) log: bool,
}

impl Axis {
    /// Where a value is; what is beyond stands at the end.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let scaled =
            |value: f64| if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let (least, most) = (scaled(self.least), scaled(self.most));
        let share = if most > least { (scaled(value) - least) / (most - least) } else { 0.0 };
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values, about so many on a linear axis; on a logarithmic one powers of ten, with 2 and 5 times these if they are few,
    /// unless it is too short to have two of these.
    pub(crate) fn ticks(&self, about: f64) -> Vec<f64> {
        if self.log {
            let (first, last) =
                (self.least.log10().floor() as i32, self.most.log10().ceil() as i32);
            let times: &[f64] = if last - first > 2 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let all =
                (first..=last).flat_map(|power| times.iter().map(move |n| n * 10_f64.powi(power)));
            let within = |tick: &f64| {
                *tick >= self.least * (1.0 - 1e-9) && *tick <= self.most * (1.0 + 1e-9)
            };
            let there: Vec<f64> = all.filter(within).collect();
            if there.len() > 1 {
                return there;
            }
        }
        let span = self.most - self.least;
        if span <= 0.0 || !span.is_finite() {
            return vec![self.least];
        }
        let ten = 10_f64.powf((span / about).log10().floor());
        let size = [1.0, 2.0, 5.0, 10.0].map(|times| times * ten);
        let size = size.into_iter().find(|size| size * about >= span).unwrap_or(10.0 * ten);
        let first = (self.least / size - 1e-9).ceil();
        let count = ((self.most - first * size) / size + 1e-9).floor() as usize;
        (0..=count).map(|tick| (first + tick as f64) * size).collect()
    }
}

/// A number as short as it can be said: up to four digits.
pub(crate) fn plain(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if size < 1e-12 => return "0".to_owned(),
        _ if size >= 1e7 => return format!("{value:.0e}"),
        _ if size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ if size >= 0.001 => 4,
        _ => return format!("{value:.0e}"),
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn axis(least: f64, most: f64, log: bool) -> Axis {
        Axis { least, most, from: 100.0, to: 200.0, log }
    }

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(axis(0.0, 50.0, false).ticks(5.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(axis(48.0, 61.0, false).ticks(4.0), [50.0, 55.0, 60.0]);
        assert_eq!(axis(0.01, 100.0, true).ticks(5.0), [0.01, 0.1, 1.0, 10.0, 100.0]);
        assert_eq!(axis(0.5, 20.0, true).ticks(5.0), [1.0, 10.0]);
        assert_eq!(axis(510.0, 690.0, true).ticks(4.0), [550.0, 600.0, 650.0]);
        assert_eq!(axis(3.0, 3.0, false).ticks(5.0), [3.0]);
    }

    #[test]
    fn values_have_places() {
        let place = |axis: Axis, value: f64| axis.place(value).round() as i64;
        assert_eq!(place(axis(0.0, 50.0, false), 25.0), 150);
        assert_eq!(place(axis(1.0, 100.0, true), 10.0), 150);
        assert_eq!(place(axis(0.0, 50.0, false), 1e9), 200);
        assert_eq!(place(axis(1.0, 100.0, true), 0.0), 100);
    }

    #[test]
    fn numbers_are_short() {
        let said = [0.0, 0.0123, 0.5, 2.0, 2.13, 47.81, 137.34, 2000.0].map(plain);
        assert_eq!(said, ["0", "0.0123", "0.5", "2", "2.13", "47.8", "137", "2000"]);
    }
}
