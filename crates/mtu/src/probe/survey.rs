//! All that is done for one address, in its order.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::hops::{self, Trace};
use super::prober::Prober;
use super::tcp::{self, Tcp};
use crate::MtuError;
use crate::search::{Found, Limit, Search};
use crate::verdict::{Verdict, judge};

/// Ports that are tried if none is named: of the web, and of SSH.
const USUAL_PORTS: [u16; 3] = [443, 80, 22];
/// How long a segment may take, with its retransmissions: Linux sends it again after some 0.2, 0.4, 0.8 and 1.6 s.
const BULK_PATIENCE: Duration = Duration::from_millis(3_500);

/// How to go about it; all but the first two are of surveys.
#[derive(Clone, Debug)]
pub struct Options {
    /// The longest that an answer is waited for.
    pub timeout: Duration,
    /// How often a size is tried at most.
    pub attempts: u32,
    /// The TCP port; without, the usual ones.
    pub port: Option<u16>,
    /// The UDP port; without, those of traceroute.
    pub udp_port: Option<u16>,
    /// Whether to send bytes to the TCP port.
    pub tcp_send: bool,
}

/// What this machine knows of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Local {
    /// The interface that packets to the host leave by.
    pub interface: String,
    /// Its MTU.
    pub mtu: u16,
    /// The router to which they go first, if the host is no neighbour.
    pub gateway: Option<IpAddr>,
    /// The path MTU that the kernel believes in: of the route, or learnt before.
    pub believed: Option<u16>,
    /// Whether it was learnt and is forgotten again, so that no route has it.
    pub is_learned: bool,
}

/// What a method found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Method {
    /// It could not be used, and why.
    Unable(String),
    /// It was.
    Used {
        /// What the search found.
        found: Found,
        /// A router that rejected packets whatever their size.
        rejected_by: Option<IpAddr>,
    },
}

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Echoes of this size are under way.
    Echo(u16),
    /// UDP of this size is.
    Udp(u16),
    /// Connections are opened.
    Connecting,
    /// A segment is sent.
    Sending,
    /// This hop is asked.
    Hop(u8),
}

/// All that was found out about an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The address.
    pub host: IpAddr,
    /// The way there, as this machine knows it.
    pub local: Local,
    /// ICMP echo.
    pub echo: Method,
    /// UDP.
    pub udp: Method,
    /// TCP.
    pub tcp: Tcp,
    /// Whether it is this machine itself that says that the host cannot be reached, and no router: nobody answered for the address of
    /// the next hop, say.
    pub is_rejected_here: bool,
    /// The hops, if there was a reason to ask them.
    pub trace: Option<Trace>,
    /// What it means.
    pub verdict: Verdict,
}

impl Method {
    /// What it found, if it was used.
    #[must_use]
    pub const fn found(&self) -> Option<&Found> {
        match self {
            Self::Used { found, .. } => Some(found),
            Self::Unable(_) => None,
        }
    }

    fn largest(&self) -> Option<u16> {
        self.found().and_then(|found| found.largest)
    }
}

/// What was found out by datagrams that the host answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What the search found.
    pub found: Found,
    /// The hops, if larger packets vanish.
    pub trace: Option<Trace>,
}

/// Finds out how large packets of UDP up to `ceiling` bytes are that `to` answers, by datagrams that begin with `head` and go on with zeros.
///
/// # Errors
/// If this machine cannot send to it.
pub fn answered(
    to: SocketAddr,
    head: &[u8],
    ceiling: u16,
    options: &Options,
) -> Result<Answered, MtuError> {
    let mut prober = Prober::answered(to, head, options.timeout);
    let search = Search::new(ceiling, None, options.attempts);
    let (found, _) = prober.search(search, &mut |_| {})?;
    let trace = match (found.limit, found.largest) {
        (Limit::Silence(_), Some(largest)) => {
            Some(hops::trace(&mut prober, ceiling.max(largest + 1), &mut |_| {})?)
        }
        _ => None,
    };
    Ok(Answered { found, trace })
}

/// Finds out what gets to `to`, over `local`.
///
/// # Errors
/// If this machine cannot send to it.
pub fn survey(
    to: SocketAddr,
    local: Local,
    options: &Options,
    tick: &mut dyn FnMut(Stage),
) -> Result<Survey, MtuError> {
    let search = |hint| Search::new(local.mtu, hint, options.attempts);
    let mut loss = (0, 0);
    let mut echoes = Prober::echo(to, options.timeout);
    let echo = match &mut echoes {
        Err(why) => Method::Unable(why.clone()),
        Ok(prober) => {
            let (found, rejected_by) =
                prober.search(search(None), &mut |size| tick(Stage::Echo(size)))?;
            if found.largest.is_some() {
                loss = found.fitting;
            }
            Method::Used { found, rejected_by }
        }
    };
    let mut datagrams = Prober::udp(to, options.udp_port, options.timeout);
    let (found, rejected_by) = datagrams
        .search(search(echo.largest()).with_loss(loss), &mut |size| tick(Stage::Udp(size)))?;
    let udp = Method::Used { found, rejected_by };

    tick(Stage::Connecting);
    let ports = options.port.map_or_else(|| USUAL_PORTS.to_vec(), |port| vec![port]);
    let mut tcp = tcp::connect(to, &ports, options.timeout);
    let largest = echo.largest().max(udp.largest());
    if let (Tcp::Connected(connection), true) = (&mut tcp, options.tcp_send) {
        tick(Stage::Sending);
        connection.bulk = Some(tcp::send(to, connection, largest, BULK_PATIENCE));
    }

    let stopped = |found: &Found| found.limit != Limit::Nothing;
    let all_fits =
        [&echo, &udp].into_iter().filter_map(|method| method.found()).any(|f| !stopped(f));
    let trace = if all_fits {
        None
    } else {
        // The host's echo replies are not rationed, as its words about ports are.
        let prober = match &mut echoes {
            Ok(prober) if echo.largest().is_some() || udp.largest().is_none() => prober,
            _ => &mut datagrams,
        };
        let large = largest.map_or(local.mtu, |largest| local.mtu.max(largest + 1));
        Some(hops::trace(prober, large, &mut |hop| tick(Stage::Hop(hop)))?)
    };
    let own = datagrams.own();
    let is_rejected_here = own.is_some()
        && [&echo, &udp].into_iter().any(
            |method| matches!(method, Method::Used { rejected_by, .. } if *rejected_by == own),
        );
    let verdict = judge(local.mtu, [echo.found(), udp.found()], &tcp_evidence(&tcp));
    Ok(Survey { host: to.ip(), local, echo, udp, tcp, is_rejected_here, trace, verdict })
}

/// The largest segment that arrived, and the smallest that did not.
fn tcp_evidence(tcp: &Tcp) -> (Option<u16>, Option<u16>) {
    let Tcp::Connected(connection) = tcp else { return (None, None) };
    let bulk = connection.bulk.iter().flatten();
    let packets = |arrived| bulk.clone().filter(move |s| s.arrived == arrived).map(|s| s.packet);
    (packets(true).max(), packets(false).min())
}
