//! Quality of Outcome (draft-ietf-ippm-qoo, "Calculating QoO"): how near a path is to what an application needs, from 0 to 100.

use serde::{Deserialize, Serialize};

use super::quantile;

/// What an application needs of a latency percentile, both ways, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// The percentile, as a share of 1.
    pub share: f64,
    /// With no more it is as good as it gets (ROP, the requirement for optimal performance).
    pub optimal_ms: f64,
    /// With more it is of no use (CPUP, the conditions at the point of unacceptable performance).
    pub unacceptable_ms: f64,
}

/// What an application needs of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// Of some percentiles of the round-trip time.
    pub latencies: Vec<Latency>,
    /// The shares of packets lost at which it is optimal, and at which it is unacceptable.
    pub loss: (f64, f64),
    /// The least goodput in either direction, in Mbit/s.
    pub goodput_mbit: f64,
}

/// What a path is like.
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// Round trips in milliseconds, in ascending order.
    pub sorted_rtts_ms: &'a [f64],
    /// The share of packets that are lost.
    pub loss: f64,
    /// Goodput in Mbit/s, that of the slower direction.
    pub goodput_mbit: f64,
}

/// What people use a path for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Application {
    /// A conversation, with picture.
    VideoCall,
    /// A game with others.
    Game,
    /// A film.
    Video,
}

/// The score of an application.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Qoo {
    /// What for.
    pub application: Application,
    /// From 0, unacceptable, to 100, as good as it gets.
    pub score: f64,
}

impl Requirement {
    /// The score of a path: the worst of latency, loss and throughput. None without round trips.
    #[must_use]
    pub fn score(&self, path: &Conditions<'_>) -> Option<f64> {
        if path.sorted_rtts_ms.is_empty() {
            return None;
        }
        let score = |measured: f64, optimal: f64, unacceptable: f64| {
            (1.0 - (measured - optimal) / (unacceptable - optimal)).clamp(0.0, 1.0) * 100.0
        };
        let latency = self.latencies.iter().map(|wanted| {
            let measured = quantile(path.sorted_rtts_ms, wanted.share);
            score(measured, wanted.optimal_ms, wanted.unacceptable_ms)
        });
        let loss = score(path.loss, self.loss.0, self.loss.1);
        let throughput = if path.goodput_mbit >= self.goodput_mbit { 100.0 } else { 0.0 };
        Some(latency.fold(loss.min(throughput), f64::min))
    }
}

impl Application {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::VideoCall, Self::Game, Self::Video];

    /// What it needs. The draft says how requirements are written and names none; so these are this project's own, in the spirit of
    /// ITU-T G.114 (a mouth-to-ear delay of 150 ms harms no conversation, one of 400 ms does).
    #[must_use]
    pub fn requirement(self) -> Requirement {
        let at = |percent: f64, optimal_ms, unacceptable_ms| Latency {
            share: percent / 100.0,
            optimal_ms,
            unacceptable_ms,
        };
        match self {
            Self::VideoCall => Requirement {
                latencies: vec![at(50.0, 100.0, 400.0), at(99.0, 200.0, 600.0)],
                loss: (0.005, 0.05),
                goodput_mbit: 1.5,
            },
            Self::Game => Requirement {
                latencies: vec![at(50.0, 40.0, 150.0), at(99.0, 60.0, 250.0)],
                loss: (0.001, 0.03),
                goodput_mbit: 0.5,
            },
            Self::Video => Requirement {
                latencies: vec![at(99.0, 1_000.0, 4_000.0)],
                loss: (0.01, 0.1),
                goodput_mbit: 8.0,
            },
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::VideoCall => "video call",
            Self::Game => "game",
            Self::Video => "video",
        }
    }

    /// Scores of all applications.
    #[must_use]
    pub fn scores(path: &Conditions<'_>) -> Vec<Qoo> {
        let score = |application: Self| {
            let score = application.requirement().score(path)?;
            Some(Qoo { application, score })
        };
        Self::ALL.into_iter().filter_map(score).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The draft's own example.
    #[test]
    fn the_example_of_the_draft() {
        let at =
            |share, optimal_ms, unacceptable_ms| Latency { share, optimal_ms, unacceptable_ms };
        let requirement = Requirement {
            latencies: vec![at(0.99, 200.0, 500.0), at(0.999, 300.0, 600.0)],
            loss: (0.01, 0.05),
            goodput_mbit: 4.0,
        };
        // 1001 round trips, of which the 991st is 350 ms and the 1000th is 375 ms.
        let mut rtts = vec![350.0; 1001];
        rtts[991..].fill(375.0);
        let path = Conditions { sorted_rtts_ms: &rtts, loss: 0.02, goodput_mbit: 28.0 };
        assert!((requirement.score(&path).unwrap() - 50.0).abs() < 1e-9);
        let quick = Conditions { sorted_rtts_ms: &[1.0], ..path };
        assert!((requirement.score(&quick).unwrap() - 75.0).abs() < 1e-9);
        assert_eq!(requirement.score(&Conditions { goodput_mbit: 3.9, ..quick }), Some(0.0));
        assert_eq!(requirement.score(&Conditions { sorted_rtts_ms: &[], ..quick }), None);
    }

    #[test]
    fn bloat_harms_games_before_films() {
        let path = Conditions { sorted_rtts_ms: &[300.0], loss: 0.0, goodput_mbit: 50.0 };
        let scores: Vec<f64> = Application::scores(&path).iter().map(|qoo| qoo.score).collect();
        assert!(scores[0] > 0.0 && scores[0] < 50.0, "{scores:?}");
        assert_eq!(scores[1..], [0.0, 100.0]);
    }
}
