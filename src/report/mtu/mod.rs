//! What a path carries: in words, then what was seen, then what may be the cause, then what helps.

mod json;

use std::fmt::Write as _;

use dualq_mtu::Verdict;
use dualq_mtu::cure::{Cure, Remedy, Situation, cures};
use dualq_mtu::overhead::{Candidate, explain};
use dualq_mtu::probe::{Connection, Hop, Method, Survey, Tcp, Trace};
use dualq_mtu::search::{Found, Limit};

pub(crate) use json::json;

/// More explanations than these explain nothing.
const MOST_CANDIDATES: usize = 8;

/// The report on each address, one after the other.
pub(crate) fn text(surveys: &[Survey]) -> String {
    surveys.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(survey: &Survey) -> String {
    let mut text = String::new();
    let Survey { host, local, .. } = survey;
    let via = local.gateway.map_or(String::new(), |gateway| format!(" via {gateway}"));
    let _ = writeln!(text, "{host}: {} with MTU {}{via}\n", local.interface, local.mtu);
    let _ = writeln!(text, "{}", answer(survey));
    for remark in remarks(survey) {
        let _ = writeln!(text, "{remark}");
    }
    seen(&mut text, survey);
    if let Some(mtu) = explained(survey) {
        causes(&mut text, mtu);
    }
    for (number, cure) in (1..).zip(remedies(survey)) {
        if number == 1 {
            let _ = writeln!(text, "\nWhat helps");
        }
        remedy(&mut text, number, &cure);
    }
    text
}

/// The answer to the question, in words.
fn answer(survey: &Survey) -> String {
    let interface = &survey.local.interface;
    match survey.verdict {
        Verdict::Whole => format!(
            "Nothing is lost for its size: packets of {} bytes, the most that {interface} sends, arrive.",
            survey.local.mtu
        ),
        Verdict::Signalled { mtu } => {
            let by = refusing(survey).map_or_else(
                || "this machine itself says so".to_owned(),
                |by| format!("{} says so by ICMP", place(survey, &by)),
            );
            format!("The path carries {mtu} bytes, and {by}: programs adapt, nothing is wrong.")
        }
        Verdict::BlackHole { mtu } => format!(
            "Packets over {mtu} bytes vanish{}, and no ICMP says so: small requests work, bulk transfers hang.",
            vanishing(survey)
        ),
        Verdict::TcpHangs { mtu, lost } => format!(
            "TCP hangs: a segment in a packet of {mtu} bytes arrives, one of {lost} does not, and nothing else is answered \
             that would tell more exactly: small requests work, bulk transfers hang."
        ),
        Verdict::Lossy { mtu } => format!(
            "Packets of {mtu} bytes arrive, but so many of all sizes are lost that nothing can be said of larger ones; \
             repair the loss first, or give more --attempts."
        ),
        Verdict::TcpWorks { mtu } => format!(
            "TCP works: a full segment, in a packet of {mtu} bytes, arrives; what else was sent is not answered."
        ),
        Verdict::NoAnswer => no_answer(survey),
    }
}

fn no_answer(survey: &Survey) -> String {
    let last = survey.trace.as_ref().and_then(|trace| trace.hops.last());
    let rejected = [&survey.echo, &survey.udp].into_iter().find_map(|method| match method {
        Method::Used { rejected_by, .. } => *rejected_by,
        Method::Unable(_) => None,
    });
    let how_far = match (rejected, last) {
        (Some(_), _) if survey.is_rejected_here => format!(
            "; this machine itself says that it cannot be reached, as where nobody on {} answers for the address {}",
            survey.local.interface,
            survey.local.gateway.unwrap_or(survey.host)
        ),
        (Some(by), _) => format!("; {by} says that it cannot be reached"),
        (None, Some(hop)) => format!("; the last that answers is {}", name(hop)),
        (None, None) => "; no router on the way answers either".to_owned(),
    };
    match &survey.tcp {
        Tcp::Connected(Connection { port, packet, .. }) => format!(
            "The host answers TCP on port {port}, where full segments make packets of {packet} bytes, but no ICMP echo or UDP of any size, so \
             nothing can be said of large packets; --tcp-send tries TCP with them."
        ),
        Tcp::Closed(_) => {
            format!("The host does not answer at all, to packets of any size{how_far}.")
        }
    }
}

/// What else should be known before the details.
fn remarks(survey: &Survey) -> Vec<String> {
    let mut remarks = Vec::new();
    let mtu = survey.verdict.mtu(survey.local.mtu);
    let hole = survey.verdict.is_black_hole();
    if let (Tcp::Connected(tcp), Some(mtu), true) = (&survey.tcp, mtu, hole)
        && tcp.packet <= mtu
    {
        remarks.push(format!(
                "TCP on port {} agreed on segments that fit (packets of {} bytes), as where an MSS is clamped: it is other \
                 protocols that suffer.",
                tcp.port, tcp.packet
            ));
    }
    if let (Some(believed), true) = (survey.local.believed, hole)
        && mtu.is_some_and(|mtu| believed <= mtu)
    {
        let from = if survey.local.is_learned {
            format!("Of this path this machine has learned an MTU of {believed} and will forget it")
        } else {
            format!("This machine already has a route with MTU {believed}")
        };
        remarks.push(format!("{from}, which avoids it for what it sends itself."));
    }
    if let (Tcp::Connected(tcp), Verdict::Whole | Verdict::Signalled { .. }) =
        (&survey.tcp, survey.verdict)
        && tcp.bulk.iter().flatten().any(|segment| !segment.arrived)
    {
        remarks.push(format!(
            "TCP segments to port {} are not acknowledged all the same, and not for their size: look at the service, and at \
             firewalls that follow connections.",
            tcp.port
        ));
    }
    let larger = |method: &Method| method.found().and_then(|found| found.largest);
    if let (Some(echo), Some(udp)) = (larger(&survey.echo), larger(&survey.udp)) {
        if echo < udp {
            remarks.push(format!(
                "Echoes over {echo} bytes are not answered, though UDP of that size arrives: somebody filters large pings, or \
                 the way back swallows what is as large. Run it at the other end too."
            ));
        }
    } else if hole && larger(&survey.udp).is_none() {
        remarks.push(
            "Only ICMP echo is answered; a filter against large pings would look the same. --port N --tcp-send makes sure."
                .to_owned(),
        );
    }
    remarks
}

fn seen(text: &mut String, survey: &Survey) {
    let _ = writeln!(text, "\nWhat was seen");
    let _ = writeln!(text, "  ICMP echo  {}", method(&survey.echo));
    let _ = writeln!(text, "  UDP        {}", method(&survey.udp));
    let _ = writeln!(text, "  TCP        {}", tcp(&survey.tcp));
    if let Some(trace) = &survey.trace {
        hops(text, trace);
    }
}

fn method(method: &Method) -> String {
    let Found { largest, limit, refusals, fitting, .. } = match method {
        Method::Unable(why) => return format!("not tried: {why}"),
        Method::Used { found, .. } => found,
    };
    let Some(largest) = largest else {
        return "no answer to packets of any size".to_owned();
    };
    let mut line = format!("{largest} bytes arrive");
    match limit {
        Limit::Silence(lost) => {
            let _ = write!(
                line,
                "; of {} bytes {lost} of {lost} were lost without a word",
                largest + 1
            );
        }
        Limit::Unclear => line.push_str("; of more it cannot be told"),
        Limit::Nothing | Limit::Refused | Limit::NoAnswer => {}
    }
    let (sent, lost) = fitting;
    if *lost > 0 {
        let _ = write!(line, "; {lost} of {sent} that fit were not answered");
    }
    for refusal in refusals {
        let by = refusal.by.map_or_else(|| "this machine".to_owned(), |by| by.to_string());
        let mtu =
            refusal.mtu.map_or_else(|| "without a number".to_owned(), |mtu| format!("MTU {mtu}"));
        let _ = write!(line, "; too big, {mtu}: {by}");
    }
    line
}

fn tcp(tcp: &Tcp) -> String {
    let connection = match tcp {
        Tcp::Closed(ports) => {
            let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
            return format!("no connection to port {}", ports.join(", "));
        }
        Tcp::Connected(connection) => connection,
    };
    let Connection { port, mss, packet, believed, bulk } = connection;
    let mut line = format!("port {port}: segments of {mss} bytes, packets of {packet}");
    if packet < believed {
        let _ = write!(
            line,
            " where {believed} are thought to fit: the other end, or a router that clamps, asks for less"
        );
    }
    for segment in bulk.iter().flatten() {
        let fate = match (segment.arrived, segment.sent_again) {
            (true, 0) => "acknowledged".to_owned(),
            (true, times) => format!("acknowledged after {times} retransmissions"),
            (false, times) => format!("never acknowledged, sent {} times", times + 1),
        };
        let _ = write!(line, "; a packet of {} bytes: {fate}", segment.packet);
    }
    line
}

fn hops(text: &mut String, trace: &Trace) {
    let mut before = 0;
    for hop in &trace.hops {
        if hop.by.is_none() {
            continue;
        }
        if hop.number > before + 1 {
            let _ = writeln!(text, "  hop {:<6} no answer", before + 1);
        }
        before = hop.number;
        let fate = match hop.large_arrives {
            Some(true) if hop.refuses => "arrive, and are refused here",
            Some(true) => "arrive",
            Some(false) => "do not arrive",
            None => "were not tried",
        };
        let (name, large) = (name(hop), trace.large);
        let _ = writeln!(text, "  hop {:<6} {name}: {large} bytes {fate}", hop.number);
    }
}

fn name(hop: &Hop) -> String {
    let by = hop.by.map_or_else(|| "a router that does not answer".to_owned(), |by| by.to_string());
    if hop.is_host { format!("{by}, the host") } else { by }
}

/// Between which hops packets vanish, as far as that could be seen.
fn vanishing(survey: &Survey) -> String {
    let Some((last, next)) = survey.trace.as_ref().and_then(Trace::vanishing) else {
        return String::new();
    };
    let next = format!("before {}", place_of(&next));
    last.map_or_else(|| format!(" {next}"), |last| format!(" after {}, {next}", place_of(&last)))
}

fn place_of(hop: &Hop) -> String {
    let by = hop.by.map_or_else(String::new, |by| format!(" ({by})"));
    if hop.is_host { format!("the host{by}") } else { format!("hop {}{by}", hop.number) }
}

/// Who says what fits.
fn refusing(survey: &Survey) -> Option<std::net::IpAddr> {
    [&survey.echo, &survey.udp]
        .into_iter()
        .filter_map(|method| method.found())
        .flat_map(|found| &found.refusals)
        .find_map(|refusal| refusal.by)
}

fn place(survey: &Survey, by: &std::net::IpAddr) -> String {
    let hops = survey.trace.iter().flat_map(|trace| &trace.hops);
    let hop = hops.into_iter().find(|hop| hop.by.as_ref() == Some(by));
    hop.map_or_else(|| format!("the router {by}"), place_of)
}

/// The value to explain: one that is less than the interface's own.
fn explained(survey: &Survey) -> Option<u16> {
    match survey.verdict {
        Verdict::Signalled { mtu } | Verdict::BlackHole { mtu } => Some(mtu),
        _ => None,
    }
}

fn causes(text: &mut String, mtu: u16) {
    let candidates = explain(mtu);
    let Some(first) = candidates.first() else { return };
    if first.leaves == mtu {
        let _ = writeln!(text, "\nWhat leaves exactly {mtu} bytes");
    } else {
        let _ = writeln!(
            text,
            "\nNothing common leaves exactly {mtu} bytes; it may be set by hand, below what one of these leaves"
        );
    }
    for candidate in candidates.iter().take(MOST_CANDIDATES) {
        let Candidate { encapsulation, link, leaves } = candidate;
        let _ = writeln!(text, "  {leaves} of {link}  {encapsulation}");
    }
    if candidates.len() > MOST_CANDIDATES {
        let _ = writeln!(text, "  and {} more", candidates.len() - MOST_CANDIDATES);
    }
}

fn remedies(survey: &Survey) -> Vec<Cure> {
    match survey.verdict.mtu(survey.local.mtu) {
        Some(mtu) if survey.verdict.is_black_hole() => cures(&Situation {
            host: survey.host,
            mtu,
            interface: survey.local.interface.clone(),
            gateway: survey.local.gateway,
        }),
        _ => Vec::new(),
    }
}

const fn title(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::RouteMtu => "a route with the right MTU",
        Remedy::MssClamp => "a clamp on the MSS",
        Remedy::MtuProbing => "TCP that finds out by itself",
        Remedy::LetIcmpThrough => "ICMP that gets through",
    }
}

fn remedy(text: &mut String, number: u32, cure: &Cure) {
    let _ = writeln!(text, "  {number}. {}: {}.", title(cure.remedy), cure.does);
    let _ = writeln!(text, "     It is {}.", cure.when);
    for (system, commands) in [("Linux", &cure.linux), ("FreeBSD", &cure.freebsd)] {
        let _ = writeln!(text, "     {system}:");
        for command in commands {
            let _ = writeln!(text, "       {command}");
        }
    }
}
