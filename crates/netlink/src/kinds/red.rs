//! `red` (`TCA_RED_*`, `struct tc_red_qopt`, `struct tc_red_xstats`).

use dualq_qdisc::kinds::red::{Config, Flags, Options, Stats};
use dualq_units::Bytes;

use super::{OwnStats, Parameters, Statistics, TCA_OPTIONS, Wire, count};
use crate::attributes::{Writer, u32_at};

const PARMS: u16 = 1;
const STAB: u16 = 2;
const MAX_P: u16 = 3;
const FLAGS: u16 = 4;

const ECN: u32 = 1;
const HARDDROP: u32 = 2;
const ADAPTATIVE: u32 = 4;
const NODROP: u32 = 8;
/// What kernels before 5.7 know, which read it beside the logarithms.
const HISTORIC: u32 = ECN | HARDDROP | ADAPTATIVE;

fn bits(flags: Flags) -> u32 {
    [
        (flags.ecn, ECN),
        (flags.harddrop, HARDDROP),
        (flags.adaptive, ADAPTATIVE),
        (flags.nodrop, NODROP),
    ]
    .into_iter()
    .filter_map(|(is_set, bit)| is_set.then_some(bit))
    .sum()
}

impl Wire for Options {
    type Config = Config;

    fn write(&self, into: &mut Writer) {
        let averaging = self.averaging();
        let flags = bits(self.flags);
        // Given twice, the kernel refuses them.
        let historic = if flags & !HISTORIC == 0 { flags as u8 } else { 0 };
        into.nest(TCA_OPTIONS, |into| {
            let sizes = [self.limit, self.min, self.max].map(u32::to_ne_bytes).concat();
            let logarithms = [averaging.wlog, averaging.plog, averaging.cell_log, historic];
            into.put(PARMS, &[&sizes[..], &logarithms].concat());
            into.put(STAB, &averaging.cells);
            let most = dualq_units::number::c_unsigned(self.probability * 2_f64.powi(32));
            into.u32(MAX_P, most);
            if flags & !HISTORIC != 0 {
                let all = HISTORIC | NODROP;
                into.put(FLAGS, &[flags, all].map(u32::to_ne_bytes).concat());
            }
        });
    }

    fn config(parameters: &Parameters<'_>) -> Option<Config> {
        let options = parameters.attributes();
        let parms = options.get(PARMS)?;
        let size = |offset| u32_at(parms, offset).map(|size| Bytes(size.into()));
        let flags = match options.get(FLAGS) {
            Some(flags) => u32_at(flags, 0)?,
            None => u32::from(*parms.get(15)?),
        };
        let is_set = |bit| flags & bit != 0;
        Some(Config {
            limit: size(0)?,
            min: size(4)?,
            max: size(8)?,
            wlog: *parms.get(12)?,
            max_probability: options.u32(MAX_P)?,
            cell_log: *parms.get(14)?,
            flags: Flags {
                ecn: is_set(ECN),
                harddrop: is_set(HARDDROP),
                adaptive: is_set(ADAPTATIVE),
                nodrop: is_set(NODROP),
            },
        })
    }

    fn stats(statistics: Statistics<'_>) -> Option<OwnStats> {
        let own = statistics.own?;
        Some(OwnStats::Red(Stats {
            early: count(own, 0).into(),
            pdrop: count(own, 4).into(),
            other: count(own, 8).into(),
            marked: count(own, 12).into(),
        }))
    }
}
