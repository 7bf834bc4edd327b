//! What a kernel could tell of its queue disciplines: reading it ends, and what was read can be shown.
#![no_main]

use dualq_netlink::Queue;
use dualq_qdisc::show;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|answer: &[u8]| {
    for queue in Queue::read(answer, 1, 1000) {
        let Some(config) = queue.config else { continue };
        assert!(!show::text(&config).is_empty() && !show::json(&config).is_empty());
        if let Some(stats) = queue.stats {
            assert!(show::text_with_stats(&config, &stats).ends_with('\n'));
            assert!(show::json_with_stats(&config, &stats).contains_key("qlen"));
        }
    }
});
