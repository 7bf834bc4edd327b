//! What the kernel tells of a connection: `struct tcp_info` (include/uapi/linux/tcp.h), as far as it is asked for.

use std::io;
use std::os::fd::BorrowedFd;

use crate::option;

/// A slow-start threshold that was never set (Linux: `TCP_INFINITE_SSTHRESH`).
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// Longer than any kernel's `struct tcp_info` so far, which grows at its end.
const LENGTH: usize = 512;

/// A connection's figures. Fields that the kernel is too old for are 0, or `None` where that would mislead.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpInfo {
    /// The smoothed round-trip time, in microseconds.
    pub srtt_us: u32,
    /// The smallest of the last minutes, in microseconds, if one was measured.
    pub min_rtt_us: Option<u32>,
    /// Its mean deviation, in microseconds.
    pub rttvar_us: u32,
    /// The round-trip time as a receiver of data knows it, smoothed, in microseconds: 0 if nothing was received.
    pub rcv_rtt_us: u32,
    /// The state of congestion avoidance: Open, Disorder, CWR, Recovery, Loss (Linux: `tcp_ca_state`).
    pub state: u8,
    /// Payload of a full segment.
    pub snd_mss: u32,
    /// Payload of the largest segments that came, about.
    pub rcv_mss: u32,
    /// The congestion window, in segments.
    pub cwnd: u32,
    /// The slow-start threshold, in segments, if it was ever set.
    pub ssthresh: Option<u32>,
    /// Segments in flight: sent, and neither acknowledged, selectively acknowledged nor deemed lost, plus those sent again.
    pub in_flight: u32,
    /// The pacing rate in bytes per second, if there is one.
    pub pacing_rate: Option<u64>,
    /// Segments that were sent again.
    pub retransmits: u32,
    /// Payload that was acknowledged, in bytes.
    pub bytes_acked: u64,
    /// Payload that arrived, in bytes.
    pub bytes_received: u64,
    /// The newest estimate of the rate at which payload is delivered, in bytes per second.
    pub delivery_rate: u64,
    /// Payload that was sent, again or not, in bytes.
    pub bytes_sent: u64,
    /// Segments with payload that were sent, again or not.
    pub data_segs_out: u32,
    /// Retransmission timeouts.
    pub timeouts: u16,
    /// Segments whose marks were echoed by the other end.
    pub delivered_ce: u32,
    /// Segments that arrived with CE (Linux 6.18).
    pub received_ce: Option<u32>,
    /// Bytes of payload that arrived at the other end with ECT(0), CE and ECT(1), as Accurate ECN tells (Linux 6.18).
    pub delivered_bytes: [u32; 3],
    /// Whether ECN was agreed on, and which.
    pub ecn: EcnMode,
    /// Whether packets have its option, with counts (Linux 7.0: `tcpi_accecn_opt_seen`).
    pub has_ecn_option: bool,
}

/// What both ends of a connection agreed on when it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// Nothing.
    #[default]
    Off,
    /// ECN; Linux 6.18 and 6.19 do not tell which.
    On,
    /// That of RFC 3168.
    Classic,
    /// Accurate ECN (RFC 9768).
    Accurate,
}

impl EcnMode {
    /// `TCPI_OPT_ECN`, among the options that were agreed on.
    const OPTION: u8 = 8;
    /// Bytes of a structure without Accurate ECN (before Linux 6.18).
    const BEFORE_ACCURATE: usize = 252;

    fn of(length: usize, options: u8, bits: u32) -> Self {
        match bits & 0b11 {
            _ if options & Self::OPTION == 0 => Self::Off,
            _ if length < Self::BEFORE_ACCURATE => Self::Classic,
            // `TCPI_ECN_MODE_RFC3168`, `TCPI_ECN_MODE_ACCECN` (Linux 7.0).
            1 => Self::Classic,
            2 => Self::Accurate,
            _ => Self::On,
        }
    }
}

/// `TCP_ACCECN_OPT_COUNTER_SEEN`, in the two bits above.
const OPTION_SEEN: u32 = 2;

impl TcpInfo {
    /// What congestion avoidance is doing under the congestion control `cc`, in one word; of what BBR does TCP_INFO says nothing.
    #[must_use]
    pub fn phase(&self, cc: &str) -> &'static str {
        let in_slow_start = self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh);
        match self.state {
            2 => "cwr",
            3 => "recovery",
            4 => "loss",
            _ if cc.starts_with("bbr") => "open",
            _ if in_slow_start => "slow_start",
            _ => "congestion_avoidance",
        }
    }

    /// Asks for those of `socket`.
    ///
    /// # Errors
    /// If it is no TCP socket.
    pub fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut bytes = [0u8; LENGTH];
        let length = option::read(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
        Ok(Self::parse(&bytes[..length]))
    }

    /// Takes the structure apart: offsets are those of the kernel's header, which never change.
    fn parse(bytes: &[u8]) -> Self {
        let u16_at =
            |at: usize| bytes.get(at..at + 2).map(|field| u16::from_ne_bytes([field[0], field[1]]));
        let u32_at = |at: usize| {
            let field = bytes.get(at..at + 4)?;
            Some(u32::from_ne_bytes(field.try_into().ok()?))
        };
        let u64_at = |at: usize| {
            let field = bytes.get(at..at + 8)?;
            Some(u64::from_ne_bytes(field.try_into().ok()?))
        };
        let [unacked, sacked, lost, retrans] = [24, 28, 32, 36].map(|at| u32_at(at).unwrap_or(0));
        Self {
            state: bytes.get(1).copied().unwrap_or(0),
            snd_mss: u32_at(16).unwrap_or(0),
            rcv_mss: u32_at(20).unwrap_or(0),
            min_rtt_us: u32_at(148).filter(|min_us| *min_us < u32::MAX),
            in_flight: unacked.saturating_sub(sacked.saturating_add(lost)).saturating_add(retrans),
            ssthresh: u32_at(76).filter(|ssthresh| *ssthresh < INFINITE_SSTHRESH),
            pacing_rate: u64_at(104).filter(|rate| *rate < u64::MAX),
            srtt_us: u32_at(68).unwrap_or(0),
            rttvar_us: u32_at(72).unwrap_or(0),
            rcv_rtt_us: u32_at(92).unwrap_or(0),
            cwnd: u32_at(80).unwrap_or(0),
            retransmits: u32_at(100).unwrap_or(0),
            bytes_acked: u64_at(120).unwrap_or(0),
            bytes_received: u64_at(128).unwrap_or(0),
            delivery_rate: u64_at(160).unwrap_or(0),
            data_segs_out: u32_at(156).unwrap_or(0),
            delivered_ce: u32_at(196).unwrap_or(0),
            bytes_sent: u64_at(200).unwrap_or(0),
            timeouts: u16_at(240).unwrap_or(0),
            received_ce: u32_at(248),
            delivered_bytes: [256, 260, 252].map(|at| u32_at(at).unwrap_or(0)),
            ecn: EcnMode::of(
                bytes.len(),
                bytes.get(5).copied().unwrap_or(0),
                u32_at(276).unwrap_or(0),
            ),
            has_ecn_option: u32_at(276).is_some_and(|bits| bits >> 2 & 0b11 == OPTION_SEEN),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_real_connection_has_a_window_and_no_more_than_it_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let stream = TcpStream::connect(listener.local_addr().expect("it is bound"));
        let info = TcpInfo::of(stream.expect("somebody listens").as_fd()).expect("it is TCP");
        assert!(info.cwnd >= 1 && info.srtt_us > 0, "{info:?}");
        assert_eq!((info.bytes_sent, info.retransmits, info.timeouts), (0, 0, 0));
    }

    #[test]
    fn an_older_kernels_shorter_structure_lacks_its_end() {
        let info = TcpInfo::parse(&[1; 104]);
        assert_eq!(info.retransmits, 0x0101_0101);
        assert_eq!((info.bytes_acked, info.received_ce), (0, None));
    }

    #[test]
    fn what_was_agreed_on_is_told_as_far_as_kernels_tell() {
        let cases = [
            (232, 0, 0, EcnMode::Off),
            (232, 8, 0, EcnMode::Classic),
            (280, 8 | 16, 0, EcnMode::On),
            (280, 8, 1 | 2 << 2, EcnMode::Classic),
            (280, 8, 2, EcnMode::Accurate),
            (280, 7, 2, EcnMode::Off),
        ];
        for (length, options, bits, mode) in cases {
            assert_eq!(EcnMode::of(length, options, bits), mode, "{length} {options} {bits}");
        }
    }
}
