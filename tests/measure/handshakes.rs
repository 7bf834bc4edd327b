//! The ECN that TCP's handshakes negotiate, across a switch that does not leave it alone.

use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use dualq_measure::Measurement;
use dualq_measure::figures::{Codepoint, Fate, Handshake, HandshakeEcn, Opener, TcpEcn};
use etherparse::{Ipv4Header, TcpHeader};

use super::network::Network;
use super::switch::{self, Carrier};
use super::{DUALQ, folder};

/// Does something to SYNs (and SYN-ACKs), which may be lost of it.
struct OfSyns(fn(&mut Ipv4Header, &mut TcpHeader) -> bool);

impl Carrier for OfSyns {
    fn carry(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let (mut ip, rest) = Ipv4Header::from_slice(packet).unwrap();
        let Ok((mut tcp, payload)) = TcpHeader::from_slice(rest) else {
            return Some(packet.to_vec());
        };
        if ip.protocol != etherparse::IpNumber::TCP || !tcp.syn {
            return Some(packet.to_vec());
        }
        if !(self.0)(&mut ip, &mut tcp) {
            return None;
        }
        Some([ip.to_bytes().as_slice(), &tcp.to_bytes(), payload].concat())
    }
}

/// What is measured from a to b across such a switch, by a whose kernel has that `net.ipv4.tcp_ecn`.
fn across(
    what: fn(&mut Ipv4Header, &mut TcpHeader) -> bool,
    tcp_ecn: &str,
) -> Option<(Vec<Handshake>, String)> {
    switch::behind(
        || OfSyns(what),
        |network| {
            network.set("a", "net/ipv4/tcp_ecn", tcp_ecn);
            let measured = measured(network);
            assert_eq!(measured.0.handshakes.unable, None);
            (measured.0.handshakes.seen, measured.1)
        },
    )
}

/// What `dualq measure` on a finds of the path to b, as a document, and in words.
pub(crate) fn measured(network: &Network) -> (Measurement, String) {
    let [text, json] = ["", " --json"].map(|form| {
        let output = output(network, "2s", form);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    });
    (serde_json::from_str(&json).unwrap(), text)
}

/// What came of `dualq measure` on a that takes so long at most, with a server on b.
pub(crate) fn output(network: &Network, max_time: &str, form: &str) -> Output {
    let folder = folder();
    let dualq = |words: &str| {
        let mut command = Command::new(DUALQ);
        command.args(words.split(' ')).current_dir(folder.path()).stdin(Stdio::null());
        command
    };
    let mut server = network.inside("b", || {
        let mut serve = dualq("serve --token-file token --listen 10.9.3.2:9332");
        serve.stderr(Stdio::null()).spawn().unwrap()
    });
    let words = "measure 10.9.3.2 --token-file token --no-progress --direction download --streams 4 --max-time";
    let output = network.inside("a", || {
        while TcpStream::connect("10.9.3.2:9332").is_err() {
            thread::sleep(Duration::from_millis(50));
        }
        dualq(&format!("{words} {max_time}{form}")).output().unwrap()
    });
    server.kill().unwrap();
    server.wait().unwrap();
    output
}

/// The handshake that this program made, asking for that.
fn of(seen: &[Handshake], asked: TcpEcn, ip: Codepoint) -> Handshake {
    let mut own = seen.iter().filter(|one| one.by == Opener::Program);
    *own.find(|one| (one.asked, one.ip) == (Some(asked), ip)).unwrap()
}

fn kernels(seen: &[Handshake]) -> Handshake {
    *seen.iter().find(|one| one.by == Opener::Kernel).unwrap()
}

#[test]
fn a_path_that_leaves_handshakes_alone() {
    let Some((seen, text)) = across(|_, _| true, "2") else { return };
    assert_eq!(seen.len(), 6, "{seen:?}");
    for one in &seen {
        assert_eq!((one.answered, one.syn.fate), (true, Fate::Passes), "{one:?}");
        assert!(one.there.is_some() && one.syn_ack.fate != Fate::Bleached, "{one:?}");
    }
    assert_eq!(kernels(&seen).here, Some(TcpEcn::Off));
    // A server of Linux says yes to whoever asks, by default.
    let classic = of(&seen, TcpEcn::Classic, Codepoint::NotEct);
    assert_eq!((classic.here, classic.syn_ack.fate), (Some(TcpEcn::Classic), Fate::Passes));
    let carried = of(&seen, TcpEcn::Accurate, Codepoint::Ect1);
    assert_eq!(carried.syn.arrived, Some(TcpEcn::Accurate.syn(Codepoint::Ect1)));
    assert!(text.contains("ECN of TCP: this host does not ask for it"), "{text}");
}

#[test]
fn flags_that_are_cleared_on_the_way_up_are_told_of_both_handshakes() {
    let clear = |_: &mut Ipv4Header, tcp: &mut TcpHeader| {
        if !tcp.ack {
            (tcp.ns, tcp.cwr, tcp.ece) = (false, false, false);
        }
        true
    };
    let Some((seen, text)) = across(clear, "1") else { return };
    let nothing = HandshakeEcn { ip: Codepoint::NotEct, ae: false, cwr: false, ece: false };
    for one in [kernels(&seen), of(&seen, TcpEcn::Accurate, Codepoint::NotEct)] {
        assert_eq!((one.syn.arrived, one.syn.fate), (Some(nothing), Fate::Bleached), "{one:?}");
        assert_eq!((one.here, one.there), (Some(TcpEcn::Off), Some(TcpEcn::Off)));
    }
    assert!(text.contains("SYN for classic ECN up: bleached"), "{text}");
    assert!(text.contains("this host asks for classic ECN and gets none"), "{text}");
}

#[test]
fn an_answer_that_is_cleared_on_the_way_down_is_told_from_a_question() {
    let clear = |_: &mut Ipv4Header, tcp: &mut TcpHeader| {
        if tcp.ack {
            (tcp.ns, tcp.cwr, tcp.ece) = (false, false, false);
        }
        true
    };
    let Some((seen, _)) = across(clear, "1") else { return };
    for one in [kernels(&seen), of(&seen, TcpEcn::Classic, Codepoint::NotEct)] {
        assert_eq!((one.syn.fate, one.syn_ack.fate), (Fate::Passes, Fate::Bleached), "{one:?}");
        assert!(one.here == Some(TcpEcn::Off) && one.there != Some(TcpEcn::Off), "{one:?}");
    }
}

#[test]
fn syns_that_vanish_for_their_flags_are_a_black_hole() {
    let Some((seen, text)) = across(|_, tcp| tcp.ack || !tcp.ece, "1") else { return };
    let plain = of(&seen, TcpEcn::Off, Codepoint::NotEct);
    assert_eq!((plain.answered, plain.syn.fate), (true, Fate::Passes));
    for asked in [TcpEcn::Classic, TcpEcn::Accurate] {
        let one = of(&seen, asked, Codepoint::NotEct);
        assert_eq!((one.answered, one.sent_again, one.syn.fate), (false, 2, Fate::BlackHole));
    }
    // The kernel asks again without; that may have been chance.
    let own = kernels(&seen);
    assert_eq!((own.here, own.syn.fate), (Some(TcpEcn::Off), Fate::Unknown), "{own:?}");
    assert!(own.sent_again > 0);
    assert!(text.contains("a SYN for Accurate ECN is not answered: black hole"), "{text}");
}

#[test]
fn the_field_of_ip_is_told_of_syns_too() {
    let bleach = |ip: &mut Ipv4Header, _: &mut TcpHeader| {
        ip.ecn = etherparse::IpEcn::try_new(0).unwrap();
        true
    };
    let Some((seen, text)) = across(bleach, "2") else { return };
    let carried = of(&seen, TcpEcn::Accurate, Codepoint::Ect1);
    assert_eq!(carried.syn.fate, Fate::Bleached, "{carried:?}");
    assert_eq!(carried.syn.arrived, Some(TcpEcn::Accurate.syn(Codepoint::NotEct)));
    assert_eq!(of(&seen, TcpEcn::Accurate, Codepoint::NotEct).syn.fate, Fate::Passes);
    assert!(text.contains("SYN for Accurate ECN as ECT(1) up: bleached"), "{text}");
}
