//! Any text, as a file of transfers' sizes: what is read is written as a word that reads as the same.

#![no_main]

use dualq_scenario::{Distribution, FlowGroup, Setup};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Distribution::read(text) {
        Err(error) => assert!(error.line >= 1 && !error.to_string().is_empty()),
        Ok(distribution) => {
            let (smallest, largest) = (distribution.points().next(), distribution.points().last());
            let (Some((smallest, _)), Some((largest, _))) = (smallest, largest) else {
                unreachable!("there is a line at least")
            };
            let flow =
                FlowGroup { size: Some(distribution.into()), ..Setup::default().flow[0].clone() };
            for transfer in flow.transfers(0).take(10) {
                let size = transfer.size.unwrap_or_default();
                assert!(size >= smallest && size <= largest);
            }
            let json = serde_json::to_string(&flow).unwrap();
            assert_eq!(serde_json::from_str::<FlowGroup>(&json).unwrap(), flow);
        }
    }
});
