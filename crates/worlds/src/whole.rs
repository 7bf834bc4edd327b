//! Whether an outcome that was read is of its scenario: lists are as long as what they are lists of.

use dualq_scenario::{DelayDistribution, Series};

use crate::Run;

/// What does not fit, by its key; a list that is empty was not kept.
pub(crate) fn fault(run: &Run) -> Option<&'static str> {
    let (scenario, outcome) = (&run.scenario, &run.outcome);
    let fits = |length: usize, wanted: usize| length == 0 || length == wanted;
    let queues = [Some(&outcome.queue), outcome.up_queue.as_ref()];
    let others = outcome.other_queues.iter().map(|other| &other.queue);
    let of_queues = queues.into_iter().flatten().chain(others).flat_map(|queue| {
        [&queue.distribution, &queue.distribution_not_ect, &queue.distribution_ect]
    });
    let of_probes = outcome.probe.iter().map(|probe| &probe.distribution);
    let classes = outcome.flow.iter().flat_map(|flow| &flow.completions);
    let of_transfers = classes.map(|class| &class.distribution);
    let mut distributions = of_queues.chain(of_probes).chain(of_transfers).flatten();
    [
        ("flow", fits(outcome.flow.len(), scenario.flow.len())),
        ("probe", fits(outcome.probe.len(), scenario.probe.len())),
        ("udp", fits(outcome.udp.len(), scenario.udp.len())),
        (
            "other_queues",
            fits(outcome.other_queues.len(), scenario.link.other_bottlenecks().count()),
        ),
        ("distribution", distributions.all(DelayDistribution::is_sound)),
        ("series", is_even(&outcome.series, scenario.flow.len(), scenario.probe.len())),
    ]
    .into_iter()
    .find_map(|(key, fits)| (!fits).then_some(key))
}

/// Whether all lists have an entry for each time.
fn is_even(series: &Series, groups: usize, probes: usize) -> bool {
    let times = series.t_s.len();
    let fits = |length: usize| length == 0 || length == times;
    fn lengths<T>(lists: &[Vec<T>]) -> impl Iterator<Item = usize> {
        lists.iter().map(Vec::len)
    }
    let gaps =
        [&series.cwnd, &series.ssthresh, &series.in_flight, &series.pacing_mbit, &series.srtt_ms];
    let counts = [&series.queue_packets, &series.queue_drops, &series.queue_marks];
    let of_groups =
        [series.goodput_mbit.len(), series.each_goodput_mbit.len(), series.retransmits.len()];
    series.queue_delay_ms.len() == times
        && series.probability.len() == times
        && counts.iter().all(|list| fits(list.len()))
        && of_groups.into_iter().all(|length| length == 0 || length == groups)
        && gaps.iter().all(|lists| lists.is_empty() || lists.len() == groups)
        && series.rtt_ms.len() == probes
        && lengths(&series.goodput_mbit).all(|length| length == times)
        && lengths(&series.rtt_ms).all(|length| length == times)
        && lengths(&series.retransmits).all(|length| length == times)
        && gaps.into_iter().flat_map(|lists| lengths(lists)).all(|length| length == times)
        && series
            .each_goodput_mbit
            .iter()
            .flat_map(|flows| lengths(flows))
            .all(|length| length == times)
}
