//! Which congestion controls there are: the registry.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{PoisonError, RwLock};

use dualq_units::hint::cold_path;

use super::about::About;
use super::{
    Bbr, Bbr3, CongestionControl, Context, Cubic, Dctcp, EcnStyle, Event, Prague, Reno, State,
    Window, bbr, bbr3, cubic, dctcp, prague, reno,
};
use crate::rate::{LostPacket, RateSample};

/// A congestion control of another crate: its name, and what makes one.
#[derive(Clone, Copy)]
pub struct Foreign {
    name: &'static str,
    make: &'static Make,
}

/// Makes a congestion control for a connection that begins, on whichever thread simulates it.
type Make = dyn Fn() -> Box<dyn CongestionControl> + Send + Sync;

impl fmt::Debug for Foreign {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Foreign").field(&self.name).finish()
    }
}

impl PartialEq for Foreign {
    /// Names are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Foreign {}

impl Hash for Foreign {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Those of other crates.
static FOREIGN: RwLock<Vec<Foreign>> = RwLock::new(Vec::new());

/// Another congestion control has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a congestion control {0:?} already; choose another name")]
pub struct NameTaken(pub &'static str);

macro_rules! algorithms {
    ($($Kind:ident $module:ident $name:literal ($Held:ty) $what:literal,)*) => {
        /// The congestion controls there are, by the kernel's names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Algorithm {
            $(#[doc = $what] $Kind,)*
            /// One of another crate, made by [`Algorithm::register`].
            Foreign(Foreign),
        }

        impl Algorithm {
            /// All of this crate.
            pub const ALL: &[Self] = &[$(Self::$Kind),*];

            /// The kernel's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Kind => $name,)*
                    Self::Foreign(foreign) => foreign.name,
                }
            }

            /// What there is to say of it, if it is of this crate.
            #[must_use]
            pub const fn about(self) -> Option<&'static About> {
                match self {
                    $(Self::$Kind => Some(&$module::ABOUT),)*
                    Self::Foreign(_) => None,
                }
            }
        }

        /// A congestion control of any kind, ours without a pointer but for the large ones: all connections have room for what is held here.
        // With a tag of its own, which takes less to look at than one in the unused values of a field.
        #[repr(u8)]
        #[derive(Debug)]
        pub(crate) enum Controller {
            $($Kind($Held),)*
            Foreign(Box<dyn CongestionControl>),
        }

        impl Controller {
            pub(crate) fn new(algorithm: Algorithm) -> Self {
                match algorithm {
                    $(Algorithm::$Kind => Self::$Kind(<$Held>::default()),)*
                    Algorithm::Foreign(foreign) => Self::Foreign((foreign.make)()),
                }
            }
        }

        /// What most controls say without looking at themselves: those of other crates are asked behind that.
        macro_rules! ask {
            ($self:ident, $control:ident => $call:expr) => {
                match $self {
                    $(Controller::$Kind($control) => $call,)*
                    Controller::Foreign($control) => {
                        cold_path();
                        $call
                    }
                }
            };
        }

        macro_rules! dispatch {
            ($self:ident, $control:ident => $call:expr) => {
                match $self {
                    $(Controller::$Kind($control) => $call,)*
                    Controller::Foreign($control) => $call,
                }
            };
        }
    };
}

algorithms! {
    Reno reno "reno" (Reno) "NewReno (RFC 5681, RFC 6582).",
    Cubic cubic "cubic" (Cubic) "CUBIC (RFC 9438).",
    Dctcp dctcp "dctcp" (Dctcp) "DCTCP (RFC 8257).",
    Bbr bbr "bbr" (Box<Bbr>) "BBR version 1.",
    Bbr3 bbr3 "bbr3" (Box<Bbr3>) "BBR version 3 (draft-ietf-ccwg-bbr).",
    Prague prague "prague" (Prague) "TCP Prague (draft-briscoe-iccrg-prague-congestion-control).",
}

impl Algorithm {
    /// Makes a congestion control known by a name, for the rest of the program's life: `make` is kept as long.
    ///
    /// # Errors
    /// If one has that name already.
    pub fn register(
        name: &'static str,
        make: impl Fn() -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> Result<Self, NameTaken> {
        let mut known = FOREIGN.write().unwrap_or_else(PoisonError::into_inner);
        let is_ours = Self::ALL.iter().any(|algorithm| algorithm.name() == name);
        if is_ours || known.iter().any(|foreign| foreign.name == name) {
            return Err(NameTaken(name));
        }
        let foreign = Foreign { name, make: Box::leak(Box::new(make)) };
        known.push(foreign);
        Ok(Self::Foreign(foreign))
    }

    /// The algorithm that is called `name`: one that the kernel calls so, or one that was [registered](Self::register).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let ours = Self::ALL.iter().copied().find(|algorithm| algorithm.name() == name);
        ours.or_else(|| {
            let known = FOREIGN.read().unwrap_or_else(PoisonError::into_inner);
            known.iter().copied().find(|foreign| foreign.name == name).map(Self::Foreign)
        })
    }

    /// How it uses ECN.
    #[must_use]
    pub fn ecn_style(self) -> EcnStyle {
        Controller::new(self).ecn_style()
    }
}

impl Controller {
    /// [`increase`](CongestionControl::increase), for which ours look at little of the context: no more of it is made, from the window and whether
    /// the control insists on pacing.
    #[inline]
    pub(crate) fn increase_by(
        &mut self,
        window: &mut Window,
        context: impl Fn(&Window, bool) -> Context,
        acked: u32,
    ) {
        dispatch!(self, control => {
            let context = context(window, control.needs_pacing());
            control.increase(window, &context, acked);
        });
    }

    /// The same of [`control`](CongestionControl::control) and its sample.
    #[inline]
    pub(crate) fn control_by(
        &mut self,
        window: &mut Window,
        context: impl Fn(&Window, bool) -> Context,
        sample: impl Fn() -> RateSample,
    ) -> bool {
        dispatch!(self, control => {
            let context = context(window, control.needs_pacing());
            control.control(window, &context, &sample())
        })
    }
}

impl CongestionControl for Controller {
    fn send_buffer_windows(&self) -> u32 {
        dispatch!(self, control => control.send_buffer_windows())
    }

    fn start(&mut self, window: &mut Window, context: &Context) {
        dispatch!(self, control => control.start(window, context));
    }

    fn ssthresh(&mut self, window: &Window, context: &Context) -> u32 {
        dispatch!(self, control => control.ssthresh(window, context))
    }

    #[inline]
    fn increase(&mut self, window: &mut Window, context: &Context, acked: u32) {
        dispatch!(self, control => control.increase(window, context, acked));
    }

    #[inline]
    fn on_ack_event(&mut self, window: &mut Window, context: &Context) {
        dispatch!(self, control => control.on_ack_event(window, context));
    }

    #[inline]
    fn on_rtt(&mut self, window: &mut Window, context: &Context, rtt_us: u64) {
        dispatch!(self, control => control.on_rtt(window, context, rtt_us));
    }

    fn on_state(&mut self, window: &mut Window, context: &Context, next: State) {
        dispatch!(self, control => control.on_state(window, context, next));
    }

    fn on_lost(&mut self, window: &mut Window, context: &Context, packet: &LostPacket) {
        dispatch!(self, control => control.on_lost(window, context, packet));
    }

    fn on_event(&mut self, window: &mut Window, context: &Context, event: Event) {
        dispatch!(self, control => control.on_event(window, context, event));
    }

    #[inline]
    fn control(&mut self, window: &mut Window, context: &Context, sample: &RateSample) -> bool {
        dispatch!(self, control => control.control(window, context, sample))
    }

    fn sets_window(&self) -> bool {
        dispatch!(self, control => control.sets_window())
    }

    fn undo(&mut self, window: &mut Window, context: &Context) -> u32 {
        dispatch!(self, control => control.undo(window, context))
    }

    #[inline]
    fn min_gso_segments(&self, window: &Window) -> u32 {
        ask!(self, control => control.min_gso_segments(window))
    }

    #[inline]
    fn gso_segments(&self) -> Option<u32> {
        ask!(self, control => control.gso_segments())
    }

    #[inline]
    fn packet_bytes(&self) -> Option<u32> {
        ask!(self, control => control.packet_bytes())
    }

    #[inline]
    fn ecn_style(&self) -> EcnStyle {
        dispatch!(self, control => control.ecn_style())
    }

    #[inline]
    fn needs_ack_events(&self) -> bool {
        ask!(self, control => control.needs_ack_events())
    }

    #[inline]
    fn needs_rtt(&self, window: &Window, rtt_us: u64) -> bool {
        ask!(self, control => control.needs_rtt(window, rtt_us))
    }

    #[inline]
    fn needs_samples(&self) -> bool {
        ask!(self, control => control.needs_samples())
    }

    #[inline]
    fn needs_losses(&self) -> bool {
        ask!(self, control => control.needs_losses())
    }

    #[inline]
    fn needs_pacing(&self) -> bool {
        ask!(self, control => control.needs_pacing())
    }

    fn phase(&self) -> Option<&'static str> {
        dispatch!(self, control => control.phase())
    }
}
