//! One end of a flow of bulk data, as client and server both have it: the end that sends, and the one that receives.
//!
//! The receiver may ask the sender, and the sender the receiver, how long a question on this very connection takes: by numbers, which
//! the sender has in its blocks' headers, and the receiver sends as eight bytes each.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

use dualpi2::SplitMix64;
use dualq_socket::TcpInfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::SockRef;

use crate::protocol::{BLOCK_HEADER_BYTES, BlockReader, FlowSample, block_header};

/// How often each end looks at its flow.
pub(crate) const INTERVAL: Duration = Duration::from_millis(100);
/// So long nobody notices that a flow is to end.
const PATIENCE: Duration = Duration::from_millis(10);
/// What waits unsent in a socket is to leave within this time: what waits longer is no delay of the path's.
const UNSENT: Duration = Duration::from_millis(4);
/// At first, before a flow's rate is known, in bytes.
const UNSENT_AT_FIRST: u64 = 32 << 10;
/// Bounds of that: in full segments, for one that is not full waits for more (Nagle, RFC 9293 §3.7.4), and in bytes.
const UNSENT_SEGMENTS: u64 = 3;
const MOST_UNSENT: u64 = 1 << 20;
/// Of a block, behind its header.
const LARGEST_BLOCK: usize = 256 << 10;
/// A number on its way back, in bytes.
const NUMBER_BYTES: usize = 8;

/// Who has a flow: is told of it, and says when it is to end.
pub(crate) trait Owner {
    /// Whether the flow is to end now.
    fn is_over(&mut self) -> bool;

    /// Every now and then.
    fn sample(&mut self, sample: FlowSample, info: &TcpInfo);

    /// A number for the other end, if there is one.
    fn next_number(&mut self) -> Option<u64>;

    /// A number came. Says false if it should not have.
    fn number(&mut self, number: u64) -> bool;

    /// Whether the flow has blocks and questions, and not only payload.
    fn is_framed(&self) -> bool {
        true
    }

    /// The greatest rate, in bytes per second, if there is one: a sender keeps to it, and a receiver takes no more.
    fn rate(&mut self) -> Option<u64> {
        None
    }
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// This end had enough.
    Over,
    /// The other end closed it.
    Closed,
    /// The other end sent what it should not have.
    Nonsense,
}

/// Numbers that wait to be sent back, of which there are never many.
#[derive(Debug, Default)]
pub(crate) struct Echoes(VecDeque<u64>);

impl Echoes {
    const MOST: usize = 64;

    pub(crate) fn push(&mut self, number: u64) -> bool {
        self.0.push_back(number);
        self.0.len() <= Self::MOST
    }

    pub(crate) fn pop(&mut self) -> Option<u64> {
        self.0.pop_front()
    }
}

/// Looks at a connection every now and then.
struct Watch {
    began: Instant,
    next: Duration,
    first: TcpInfo,
    /// Its round trips are those of the other end's data, as far as a receiver knows them.
    only_receives: bool,
}

impl Watch {
    fn begin(stream: &TcpStream, only_receives: bool) -> io::Result<Self> {
        let first = TcpInfo::of(stream.as_fd())?;
        Ok(Self { began: Instant::now(), next: INTERVAL, first, only_receives })
    }

    /// If it is time, or at the end: what the connection is like, `received` being what a receiver has counted.
    fn look(
        &mut self,
        stream: &TcpStream,
        received: Option<u64>,
        at_end: bool,
    ) -> io::Result<Option<(FlowSample, TcpInfo)>> {
        let now = self.began.elapsed();
        if now < self.next && !at_end {
            return Ok(None);
        }
        self.next = now + INTERVAL;
        let (info, first) = (TcpInfo::of(stream.as_fd())?, &self.first);
        let ce = match received {
            None => info.delivered_ce.saturating_sub(first.delivered_ce),
            // Like bytes: also of what had arrived when a receiver began to look.
            Some(_) => info.received_ce.unwrap_or(0),
        };
        let sample = FlowSample {
            t_us: now.as_micros() as u64,
            bytes: received.unwrap_or(info.bytes_acked.saturating_sub(first.bytes_acked)),
            srtt_us: if self.only_receives { info.rcv_rtt_us } else { info.srtt_us },
            min_rtt_us: info.min_rtt_us.unwrap_or(0),
            cwnd: info.cwnd,
            segments: info.data_segs_out.saturating_sub(first.data_segs_out),
            retransmits: info.retransmits.saturating_sub(first.retransmits),
            ce,
        };
        Ok(Some((sample, info)))
    }
}

/// The congestion control of this end, by the kernel's name.
pub(crate) fn congestion_control(stream: &TcpStream) -> Option<String> {
    let name = SockRef::from(stream).tcp_congestion().ok()?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
}

fn wait(stream: &TcpStream, flags: PollFlags) -> io::Result<PollFlags> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: PATIENCE.as_nanos() as _ };
    let mut fds = [PollFd::new(stream, flags)];
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(fds[0].revents()),
        Err(error) => Err(error.into()),
    }
}

/// What an error of a connection's means: that the other end is gone, that there is nothing to do, or what it says.
fn outcome(error: io::Error) -> io::Result<Option<End>> {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => {
            Ok(Some(End::Closed))
        }
        _ => Err(error),
    }
}

/// Sends until it is over, as fast as the connection takes it. `rest` is what came behind the connection's lines.
pub(crate) fn send(stream: &TcpStream, rest: &[u8], owner: &mut impl Owner) -> io::Result<End> {
    stream.set_nonblocking(true)?;
    // What is not delivered at the end is of no use to anybody.
    let socket = SockRef::from(stream);
    socket.set_linger(Some(Duration::ZERO))?;
    // Segments are to be full, wherever a block ends.
    socket.set_tcp_nodelay(false)?;
    let mut watch = Watch::begin(stream, false)?;
    let mut bytes = noise();
    let least = UNSENT_SEGMENTS * u64::from(watch.first.snd_mss);
    let (mut unsent, mut written, mut length) = (UNSENT_AT_FIRST.max(least), 0, 0);
    socket.set_tcp_notsent_lowat(unsent as u32)?;
    let mut numbers = Numbers::default();
    if !numbers.push(rest, |number| owner.number(number)) {
        return Ok(End::Nonsense);
    }
    let (mut last, mut paced) = (FlowSample::default(), None);
    let end = loop {
        if owner.is_over() {
            break End::Over;
        }
        if let Some((sample, info)) = watch.look(stream, None, false)? {
            let spent = Duration::from_micros(sample.t_us - last.t_us).as_secs_f64();
            let wanted = (sample.bytes - last.bytes) as f64 / spent * UNSENT.as_secs_f64();
            unsent = (wanted as u64).min(MOST_UNSENT).max(least);
            socket.set_tcp_notsent_lowat(unsent as u32)?;
            last = sample;
            owner.sample(sample, &info);
        }
        let rate = owner.rate();
        if rate != paced {
            dualq_socket::pace(stream.as_fd(), rate)?;
            paced = rate;
        }
        let ready = wait(stream, PollFlags::IN | PollFlags::OUT)?;
        if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            let mut some = [0; 64 * NUMBER_BYTES];
            match (&*stream).read(&mut some) {
                Ok(0) => break End::Closed,
                Ok(count) if numbers.push(&some[..count], |number| owner.number(number)) => {}
                Ok(_) => break End::Nonsense,
                Err(error) => {
                    if let Some(end) = outcome(error)? {
                        break end;
                    }
                }
            }
        }
        if !ready.intersects(PollFlags::OUT) {
            continue;
        }
        if written == length {
            let payload = (unsent as usize / 2).min(LARGEST_BLOCK);
            let header = block_header(owner.next_number().unwrap_or(0), payload as u32);
            bytes[..BLOCK_HEADER_BYTES].copy_from_slice(&header);
            (written, length) = (0, BLOCK_HEADER_BYTES + payload);
        }
        match (&*stream).write(&bytes[written..length]) {
            Ok(count) => written += count,
            Err(error) => {
                if let Some(end) = outcome(error)? {
                    break end;
                }
            }
        }
    };
    if let Some((sample, info)) = watch.look(stream, None, true)? {
        owner.sample(sample, &info);
    }
    Ok(end)
}

/// Receives until it is over. `rest` is what came behind the connection's lines.
pub(crate) fn receive(stream: &TcpStream, rest: &[u8], owner: &mut impl Owner) -> io::Result<End> {
    stream.set_nonblocking(true)?;
    SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
    let mut watch = Watch::begin(stream, !owner.is_framed())?;
    let mut bytes = vec![0; LARGEST_BLOCK];
    let mut blocks = BlockReader::default();
    let mut received = rest.len() as u64;
    let mut gate = Gate::open();
    let mut to_write: Vec<u8> = Vec::new();
    let mut take = |owner: &mut _, bytes: &[u8]| {
        let mut expected = true;
        let is_framed = Owner::is_framed(owner);
        let tell = |number| expected &= Owner::number(owner, number);
        !is_framed || (blocks.push(bytes, tell) && expected)
    };
    if !take(owner, rest) {
        return Ok(End::Nonsense);
    }
    let end = loop {
        if owner.is_over() {
            break End::Over;
        }
        if let Some((sample, info)) = watch.look(stream, Some(received), false)? {
            owner.sample(sample, &info);
        }
        // What a sender that reads nothing asks for waits with the owner, who has a bound.
        if to_write.is_empty() {
            while let Some(number) = owner.next_number() {
                to_write.extend_from_slice(&number.to_be_bytes());
            }
        }
        if !to_write.is_empty() {
            match (&*stream).write(&to_write) {
                Ok(count) => drop(to_write.drain(..count)),
                Err(error) => {
                    if let Some(end) = outcome(error)? {
                        break end;
                    }
                }
            }
        }
        if let Some(rate) = owner.rate()
            && let Some(left) = gate.closed(rate, received)
        {
            thread::sleep(left.min(PATIENCE));
            continue;
        }
        let ready = wait(stream, PollFlags::IN)?;
        if !ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            continue;
        }
        match (&*stream).read(&mut bytes) {
            Ok(0) => break End::Closed,
            Ok(count) => {
                received += count as u64;
                if !take(owner, &bytes[..count]) {
                    break End::Nonsense;
                }
            }
            Err(error) => {
                if let Some(end) = outcome(error)? {
                    break end;
                }
            }
        }
    };
    if let Some((sample, info)) = watch.look(stream, Some(received), true)? {
        owner.sample(sample, &info);
    }
    Ok(end)
}

/// What keeps a receiver to a rate that its sender should keep to: what is not read fills the window, and then nothing more is sent.
struct Gate {
    looked: Instant,
    /// Bytes that had come by then.
    received: u64,
    /// Bytes that may come at once; fewer than none if too many came.
    credit: f64,
}

impl Gate {
    /// Of a rate that comes in bursts nothing is held back that is within it for so long.
    const BURST: Duration = Duration::from_millis(250);
    /// Beside that, for the slowest, in bytes.
    const LEAST: f64 = LARGEST_BLOCK as f64;

    fn open() -> Self {
        Self { looked: Instant::now(), received: 0, credit: Self::LEAST }
    }

    /// How long nothing is to be read, `received` having come until now, at that many bytes per second.
    fn closed(&mut self, rate: u64, received: u64) -> Option<Duration> {
        let (now, rate) = (Instant::now(), rate as f64);
        let earned = rate * now.duration_since(self.looked).as_secs_f64();
        let most = Self::LEAST + rate * Self::BURST.as_secs_f64();
        self.credit = (self.credit + earned).min(most) - (received - self.received) as f64;
        (self.looked, self.received) = (now, received);
        (self.credit < 0.0).then(|| Duration::from_secs_f64(-self.credit / rate))
    }
}

/// Numbers of eight bytes out of a stream.
#[derive(Default)]
struct Numbers {
    bytes: [u8; NUMBER_BYTES],
    filled: usize,
}

impl Numbers {
    /// Says false if somebody who is told of a number does.
    fn push(&mut self, bytes: &[u8], mut tell: impl FnMut(u64) -> bool) -> bool {
        let mut expected = true;
        for byte in bytes {
            self.bytes[self.filled] = *byte;
            self.filled = (self.filled + 1) % NUMBER_BYTES;
            if self.filled == 0 {
                expected &= tell(u64::from_be_bytes(self.bytes));
            }
        }
        expected
    }
}

/// A block's bytes, which nothing on the way can compress.
fn noise() -> Vec<u8> {
    let mut random = SplitMix64::new(1);
    let words = (BLOCK_HEADER_BYTES + LARGEST_BLOCK) / 8;
    (0..words).flat_map(|_| random.next_u64().to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Takes payload for a while.
    struct Limited {
        ends: Instant,
        rate: u64,
        came: u64,
    }

    impl Owner for Limited {
        fn is_over(&mut self) -> bool {
            Instant::now() >= self.ends
        }

        fn sample(&mut self, sample: FlowSample, _: &TcpInfo) {
            self.came = sample.bytes;
        }

        fn next_number(&mut self) -> Option<u64> {
            None
        }

        fn number(&mut self, _: u64) -> bool {
            true
        }

        fn is_framed(&self) -> bool {
            false
        }

        fn rate(&mut self) -> Option<u64> {
            Some(self.rate)
        }
    }

    /// Sends back all numbers, for a while.
    struct Answering {
        ends: Instant,
        echoes: Echoes,
    }

    impl Owner for Answering {
        fn is_over(&mut self) -> bool {
            Instant::now() >= self.ends
        }

        fn sample(&mut self, _: FlowSample, _: &TcpInfo) {}

        fn next_number(&mut self) -> Option<u64> {
            self.echoes.pop()
        }

        fn number(&mut self, number: u64) -> bool {
            self.echoes.push(number)
        }
    }

    #[test]
    fn who_asks_and_reads_no_answers_is_sent_away_and_costs_no_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut asking = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        asking.set_nodelay(true).unwrap();
        SockRef::from(&stream).set_send_buffer_size(4096).unwrap();
        let asker = thread::spawn(move || {
            // As many as are read at once are answered.
            let few = block_header(1, 4080).into_iter().chain([0; 4080]).collect::<Vec<u8>>();
            while asking.write_all(&few).is_ok() {}
        });
        let ends = Instant::now() + Duration::from_secs(10);
        let mut owner = Answering { ends, echoes: Echoes::default() };
        assert_eq!(receive(&stream, &[], &mut owner).unwrap(), End::Nonsense);
        drop(stream);
        asker.join().unwrap();
    }

    #[test]
    fn who_sends_too_fast_is_not_read_any_faster() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let sender = thread::spawn(move || {
            let mut stream = TcpStream::connect(at).unwrap();
            while stream.write_all(&[7; 1 << 16]).is_ok() {}
        });
        let (stream, _) = listener.accept().unwrap();
        let began = Instant::now();
        let ends = began + Duration::from_secs(1);
        let mut owner = Limited { ends, rate: 4_000_000, came: 0 };
        assert_eq!(receive(&stream, &[], &mut owner).unwrap(), End::Over);
        let lasted_s = began.elapsed().as_secs_f64();
        drop(stream);
        sender.join().unwrap();
        // What may come at once, what was earned, and the read that was one too many.
        let most = 4e6 * lasted_s + Gate::LEAST + LARGEST_BLOCK as f64;
        assert!((3e6..=most).contains(&(owner.came as f64)), "{} {most}", owner.came);
    }
}
