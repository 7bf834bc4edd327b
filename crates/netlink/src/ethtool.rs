//! Offloads: whether the kernel hands aggregates of packets to a device, and makes such of what arrives. What `ethtool -k` and
//! `-K` do, over generic netlink (Linux 5.6).

use crate::attributes::{Attributes, Writer};
use crate::channel::{Failure, messages};
use crate::error::{ENODEV, on_off};
use crate::{Netlink, NetlinkError};

/// The family that tells the numbers of the others.
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

const ETHTOOL_MSG_FEATURES_GET: u8 = 11;
const ETHTOOL_MSG_FEATURES_SET: u8 = 12;
const ETHTOOL_A_FEATURES_HEADER: u16 = 1;
const ETHTOOL_A_FEATURES_WANTED: u16 = 3;
const ETHTOOL_A_FEATURES_ACTIVE: u16 = 4;
const ETHTOOL_A_HEADER_DEV_NAME: u16 = 2;
const ETHTOOL_A_BITSET_BITS: u16 = 3;
const ETHTOOL_A_BITSET_BITS_BIT: u16 = 1;
const ETHTOOL_A_BITSET_BIT_NAME: u16 = 2;
const ETHTOOL_A_BITSET_BIT_VALUE: u16 = 3;

/// What `ethtool -K … gso` switches.
const GSO: &str = "tx-generic-segmentation";
/// What `ethtool -K … tso` switches.
const TSO: [&str; 4] = [
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
];

const SEGMENTATION: &str = "segmentation offload";

/// What `ethtool -K … gro` switches.
const GRO: &str = "rx-gro";
/// What `ethtool -K … rx-gro-hw` switches.
const GRO_HW: &str = "rx-gro-hw";
/// What `ethtool -K … lro` switches.
const LRO: &str = "rx-lro";

/// A generic message begins with its command, a version and two bytes of nothing.
const GENERIC_HEADER: usize = 4;

/// Which segmentation offloads of a device are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentationOffload {
    /// TCP's: the device takes aggregates apart.
    pub tso: bool,
    /// The generic one: the kernel does so, just before the device.
    pub gso: bool,
}

/// Which offloads of a device are on that make or take aggregates of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offloads {
    /// On the way out.
    pub segmentation: SegmentationOffload,
    /// Generic receive offload: the kernel puts what arrives together.
    pub gro: bool,
    /// The same by the device.
    pub gro_hw: bool,
    /// Large receive offload: the device does so, and what it forgets is gone.
    pub lro: bool,
}

/// What puts packets together that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveOffload {
    /// [`Offloads::gro`].
    Gro,
    /// [`Offloads::gro_hw`].
    GroHw,
    /// [`Offloads::lro`].
    Lro,
}

impl ReceiveOffload {
    const fn feature(self) -> &'static str {
        match self {
            Self::Gro => GRO,
            Self::GroHw => GRO_HW,
            Self::Lro => LRO,
        }
    }
}

impl Offloads {
    /// Whether that one is on.
    #[must_use]
    pub const fn has(&self, which: ReceiveOffload) -> bool {
        match which {
            ReceiveOffload::Gro => self.gro,
            ReceiveOffload::GroHw => self.gro_hw,
            ReceiveOffload::Lro => self.lro,
        }
    }
}

fn question(command: u8) -> Writer {
    Writer::after(vec![command, 1, 0, 0])
}

impl Netlink {
    /// Switches segmentation offload: `ethtool -K NAME tso on gso on`, or `off`.
    ///
    /// # Errors
    /// [`NetlinkError::NoLink`] if there is no such device, [`NetlinkError::FixedOffload`] if it stays as it was; another if
    /// the kernel refuses.
    pub fn set_segmentation_offload(&mut self, name: &str, on: bool) -> Result<(), NetlinkError> {
        let features: Vec<&str> = TSO.into_iter().chain([GSO]).collect();
        self.set_features(name, SEGMENTATION, &features, on)?;
        // The kernel switches what can be, and calls that a success.
        if self.segmentation_offload(name)? == (SegmentationOffload { tso: on, gso: on }) {
            Ok(())
        } else {
            Err(NetlinkError::FixedOffload { feature: SEGMENTATION, name: name.to_owned(), on })
        }
    }

    /// Switches what puts packets together that arrive: `ethtool -K NAME gro on`, or `off`.
    ///
    /// # Errors
    /// As [`set_segmentation_offload`](Self::set_segmentation_offload).
    pub fn set_receive_offload(
        &mut self,
        name: &str,
        which: ReceiveOffload,
        on: bool,
    ) -> Result<(), NetlinkError> {
        self.set_features(name, which.feature(), &[which.feature()], on)?;
        if self.offloads(name)?.has(which) == on {
            Ok(())
        } else {
            let (feature, name) = (which.feature(), name.to_owned());
            Err(NetlinkError::FixedOffload { feature, name, on })
        }
    }

    fn set_features(
        &mut self,
        name: &str,
        called: &str,
        features: &[&str],
        on: bool,
    ) -> Result<(), NetlinkError> {
        let what = || format!("turn {called} of {name} {}", on_off(on));
        let mut set = self::features(ETHTOOL_MSG_FEATURES_SET, name);
        set.nest(ETHTOOL_A_FEATURES_WANTED, |bitset| {
            bitset.nest(ETHTOOL_A_BITSET_BITS, |bits| {
                for feature in features {
                    bits.nest(ETHTOOL_A_BITSET_BITS_BIT, |bit| {
                        bit.string(ETHTOOL_A_BITSET_BIT_NAME, feature);
                        if on {
                            bit.put(ETHTOOL_A_BITSET_BIT_VALUE, &[]);
                        }
                    });
                }
            });
        });
        self.ethtool(name, set, what).map(drop)
    }

    /// Which segmentation offloads are on: what `ethtool -k NAME` tells.
    ///
    /// # Errors
    /// [`NetlinkError::NoLink`] if there is no such device; another if the kernel does not tell.
    pub fn segmentation_offload(
        &mut self,
        name: &str,
    ) -> Result<SegmentationOffload, NetlinkError> {
        self.offloads(name).map(|offloads| offloads.segmentation)
    }

    /// Which offloads are on: what `ethtool -k NAME` tells.
    ///
    /// # Errors
    /// [`NetlinkError::NoLink`] if there is no such device; another if the kernel does not tell.
    pub fn offloads(&mut self, name: &str) -> Result<Offloads, NetlinkError> {
        let what = || format!("read the offloads of {name}");
        let answer = self.ethtool(name, features(ETHTOOL_MSG_FEATURES_GET, name), what)?;
        active(&answer).ok_or_else(|| Failure::Malformed.of(what()))
    }

    /// Asks ethtool about the device `name`.
    fn ethtool(
        &mut self,
        name: &str,
        question: Writer,
        what: impl Fn() -> String,
    ) -> Result<Vec<u8>, NetlinkError> {
        let family = self.ethtool_family().map_err(|failure| failure.of(what()))?;
        self.generic.ask(family, 0, &question.finish()).map_err(|failure| match failure {
            Failure::Refused { errno: ENODEV, .. } => {
                NetlinkError::NoLink { name: name.to_owned() }
            }
            other => other.of(what()),
        })
    }

    fn ethtool_family(&mut self) -> Result<u16, Failure> {
        if let Some(family) = self.ethtool {
            return Ok(family);
        }
        let mut question = question(CTRL_CMD_GETFAMILY);
        question.string(CTRL_ATTR_FAMILY_NAME, "ethtool");
        let answer = self.generic.ask(GENL_ID_CTRL, 0, &question.finish())?;
        let family = generic_attributes(&answer)
            .and_then(|attributes| attributes.u16(CTRL_ATTR_FAMILY_ID))
            .ok_or(Failure::Malformed)?;
        self.ethtool = Some(family);
        Ok(family)
    }
}

fn features(command: u8, name: &str) -> Writer {
    let mut features = question(command);
    features.nest(ETHTOOL_A_FEATURES_HEADER, |header| {
        header.string(ETHTOOL_A_HEADER_DEV_NAME, name);
    });
    features
}

fn generic_attributes(answer: &[u8]) -> Option<Attributes<'_>> {
    messages(answer).next()?.payload.get(GENERIC_HEADER..).map(Attributes::read)
}

fn active(answer: &[u8]) -> Option<Offloads> {
    let bits = generic_attributes(answer)?
        .nested(ETHTOOL_A_FEATURES_ACTIVE)?
        .nested(ETHTOOL_A_BITSET_BITS)?;
    // A list without a mask names those that are on.
    let bits = bits.all(ETHTOOL_A_BITSET_BITS_BIT).map(Attributes::read);
    let on: Vec<&str> = bits.filter_map(|bit| bit.string(ETHTOOL_A_BITSET_BIT_NAME)).collect();
    let tso = TSO.iter().any(|feature| on.contains(feature));
    let segmentation = SegmentationOffload { tso, gso: on.contains(&GSO) };
    let [gro, gro_hw, lro] = [GRO, GRO_HW, LRO].map(|feature| on.contains(&feature));
    Some(Offloads { segmentation, gro, gro_hw, lro })
}
