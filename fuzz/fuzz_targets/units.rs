//! Any text, as a rate, a time or a size.

#![no_main]

use dualq_units::{Bytes, Rate, number, tc_time};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(rate) = text.parse::<Rate>() {
        let shown: Rate = rate.to_string().parse().expect("tc reads what it prints");
        // Above 1 Mbit/s, tc prints three digits or more and cuts the rest.
        assert!(
            shown <= rate
                && rate.as_bits_per_second() - shown.as_bits_per_second()
                    <= rate.as_bits_per_second() / 1000
        );
    }
    if let Ok(size) = text.parse::<Bytes>() {
        let _ = size.to_string().parse::<Bytes>();
    }
    if let Ok(micros) = tc_time::parse_micros(text) {
        tc_time::parse_micros(&tc_time::format_micros(micros)).expect("tc reads what it prints");
    }
    let _ = tc_time::parse(text);
    let _ = number::strtof_word(text);
    for base in [0, 8, 10, 16] {
        let _ = number::strtoul(text, base);
        let _ = number::strtol(text, base);
    }
    for digits in 0..8 {
        if let Some((value, rest)) = number::strtod(text) {
            assert!(text.ends_with(rest));
            let _ = number::format_g(value, digits);
        }
    }
});
