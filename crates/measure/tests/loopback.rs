//! Both ends on one machine, and ends that are not what they should be.
#![cfg(target_os = "linux")]

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dualq_measure::server::{Server, Settings};
use dualq_measure::{Direction, Far, MeasureError, Measurement, Method, Options, Token, measure};
use dualq_units::{Bytes, Rate};
use socket2::{Domain, Socket, Type};

fn settings() -> Settings {
    Settings {
        token: Token::new([7; 32]),
        max_duration: Duration::from_secs(60),
        max_rate: None,
        max_sessions: 2,
        allow: Vec::new(),
    }
}

/// A server of this process, for as long as that lives.
fn serve(settings: Settings) -> SocketAddr {
    let server = Server::open(&["127.0.0.1:0".parse().unwrap()], settings).unwrap();
    let address = server.addresses()[0];
    thread::spawn(move || server.run());
    address
}

fn options(at: SocketAddr) -> Options {
    Options {
        host: at.ip().to_string(),
        port: at.port(),
        family: None,
        far: Far::Dualq(Token::new([7; 32])),
        directions: vec![Direction::Download, Direction::Upload],
        streams: Some(2),
        cc: None,
        rate: Some(Rate::from_mbit(40)),
        max_time: Duration::from_secs(8),
        max_bytes: None,
    }
}

/// What comes of it, in one line if it fails.
fn outcome(options: &Options) -> Result<Measurement, String> {
    measure(options, &mut |_| {}).map_err(|error: MeasureError| {
        let text = error.to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    })
}

#[test]
fn both_ways_have_their_rate_and_their_round_trips() {
    let measured = outcome(&options(serve(settings()))).unwrap();
    assert!(measured.base_rtt_ms().unwrap() < 5.0);
    for (direction, is_up) in [(Direction::Download, false), (Direction::Upload, true)] {
        let loaded = measured.under(direction).unwrap();
        let (this, other) =
            if is_up { (&loaded.up, &loaded.down) } else { (&loaded.down, &loaded.up) };
        let load = this.as_ref().unwrap();
        assert!(other.is_none());
        // The limit is of payload and headers, and pacing is never faster.
        assert!((30.0..40.5).contains(&load.goodput_mbit), "{direction:?}: {}", load.goodput_mbit);
        assert_eq!(load.flow_goodput_mbit.len(), 2);
        assert!(load.srtt.is_some() && load.min_rtt_ms.is_some(), "{direction:?}");
        for method in [Method::Tcp, Method::Udp, Method::Connect, Method::Request, Method::Loaded] {
            assert!(loaded.rtt(method).is_some_and(|rtt| rtt.n > 2), "{direction:?} {method:?}");
        }
        assert!(loaded.rpm.is_some() && loaded.loss.is_some_and(|loss| loss.sent > 10));
        assert_eq!(loaded.qoo.len(), 3);
    }
    let json = serde_json::to_string(&measured).unwrap();
    assert_eq!(serde_json::from_str::<Measurement>(&json).unwrap(), measured);
}

#[test]
fn bytes_are_bounded() {
    let at = serve(settings());
    let few = Options {
        max_bytes: Some(Bytes(2_000_000)),
        rate: Some(Rate::from_mbit(20)),
        ..options(at)
    };
    let measured = outcome(&few).unwrap();
    // A look each 100 ms, and what is on its way then: 20 Mbit/s carry 250 kB in it.
    assert!((1_000_000..3_500_000).contains(&measured.bytes), "{}", measured.bytes);
}

#[test]
fn a_servers_limits_hold() {
    let at = serve(Settings { max_rate: Some(Rate::from_mbit(10)), ..settings() });
    let both = vec![Direction::Download, Direction::Upload];
    let measured = outcome(&Options { directions: both, rate: None, ..options(at) }).unwrap();
    let [down, up] =
        [Direction::Download, Direction::Upload].map(|way| measured.under(way).unwrap());
    for load in [&down.down, &up.up] {
        let goodput = load.as_ref().unwrap().goodput_mbit;
        assert!((7.0..10.5).contains(&goodput), "{goodput}");
    }
    assert_eq!(measured.rate_limit_mbit, Some(10.0));
    let elsewhere = serve(Settings { allow: vec!["192.0.2.0/24".parse().unwrap()], ..settings() });
    assert!(outcome(&options(elsewhere)).unwrap_err().contains("no `dualq serve`"));
    let unknown = Options { cc: Some("nonesuch".to_owned()), ..options(at) };
    let why = outcome(&unknown).unwrap_err();
    assert!(why.contains("nonesuch"), "{why}");
}

#[test]
fn a_session_more_than_allowed_is_refused() {
    let at = serve(Settings { max_sessions: 1, ..settings() });
    let first = thread::spawn(move || outcome(&options(at)));
    thread::sleep(Duration::from_millis(500));
    let why = outcome(&options(at)).unwrap_err();
    assert!(why.contains("as many sessions as it may"), "{why}");
    first.join().unwrap().unwrap();
}

#[test]
fn a_session_ends_when_its_time_is_up() {
    let at = serve(Settings { max_duration: Duration::from_millis(2500), ..settings() });
    // What the server allows is known, so that the client asks for no more.
    let measured = outcome(&options(at));
    let is_told = measured.as_ref().err().is_some_and(|why| why.contains("a session may last"));
    assert!(measured.is_ok() || is_told, "{measured:?}");
}

#[test]
fn another_token_is_refused() {
    let at = serve(settings());
    let wrong = Options { far: Far::Dualq(Token::new([8; 32])), ..options(at) };
    assert!(outcome(&wrong).unwrap_err().contains("its token is another one"));
}

/// A peer that does this with each connection.
fn peer(act: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            act(stream);
        }
    });
    at
}

#[test]
fn who_is_no_server_is_told_from_one() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(outcome(&options(nobody)).unwrap_err().contains("cannot reach"));
    let missing = Options { host: "no-such-host.invalid".to_owned(), ..options(nobody) };
    assert!(outcome(&missing).unwrap_err().contains("cannot find the host"));
    let http = peer(|mut stream| drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")));
    assert!(outcome(&options(http)).unwrap_err().contains("no `dualq serve`"));
    let closes = peer(drop);
    assert!(outcome(&options(closes)).unwrap_err().contains("closed the connection"));
    // Neither a line without an end nor one of another version.
    let endless = peer(|mut stream| {
        thread::spawn(move || while stream.write_all(&[b'x'; 65536]).is_ok() {});
    });
    assert!(outcome(&options(endless)).unwrap_err().contains("longer than"));
    let newer = peer(|mut stream| {
        let hello = format!(
            "{{\"hello\":{{\"dualq_measure\":2,\"challenge\":\"{}\"}}}}\n",
            "00".repeat(16)
        );
        let _ = stream.write_all(hello.as_bytes());
    });
    assert!(outcome(&options(newer)).unwrap_err().contains("version 2"));
    // One that does not know the token, but says that all is well.
    let impostor = peer(|mut stream| {
        let hello = format!(
            "{{\"hello\":{{\"dualq_measure\":1,\"challenge\":\"{}\"}}}}\n",
            "00".repeat(16)
        );
        let _ = stream.write_all(hello.as_bytes());
        let _ = BufReader::new(&stream).read_line(&mut String::new());
        let welcome = format!(
            "{{\"welcome\":{{\"proof\":\"{}\",\"session\":\"{}\",\"limits\":{{\"duration_ms\":1000,\"rate\":null,\"flows\":1}}}}}}\n",
            "00".repeat(32),
            "00".repeat(16)
        );
        let _ = stream.write_all(welcome.as_bytes());
    });
    assert!(outcome(&options(impostor)).unwrap_err().contains("does not know the token"));
}

/// Passes bytes on, both ways.
fn join(near: &TcpStream, far: &TcpStream) {
    for (from, to) in [(near, far), (far, near)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        thread::spawn(move || {
            let mut bytes = [0; 65536];
            while let Ok(count @ 1..) = from.read(&mut bytes) {
                if to.write_all(&bytes[..count]).is_err() {
                    break;
                }
            }
        });
    }
}

/// What stands between both ends: it passes bytes on, and after a while does something else.
fn between(server: SocketAddr, after: Duration, act: fn(&TcpStream, &TcpStream)) -> SocketAddr {
    let began = Instant::now();
    peer(move |near| {
        let far = TcpStream::connect(server).unwrap();
        join(&near, &far);
        thread::spawn(move || {
            thread::sleep(after.saturating_sub(began.elapsed()));
            act(&near, &far);
        });
    })
}

#[test]
fn a_server_that_vanishes_or_lies_in_the_middle_is_told() {
    let server = serve(settings());
    let gone = between(server, Duration::from_secs(3), |near, far| {
        let _ = near.shutdown(std::net::Shutdown::Both);
        let _ = far.shutdown(std::net::Shutdown::Both);
    });
    let why = outcome(&options(gone)).unwrap_err();
    assert!(why.contains("has vanished"), "{why}");
    // More than was asked for: bytes that no block has, on every connection.
    let more = between(server, Duration::from_secs(3), |mut near, _| {
        let _ = near.write_all(&[0xff; 4096]);
    });
    let why = outcome(&options(more)).unwrap_err();
    assert!(why.contains("does not keep to the protocol"), "{why}");
}

#[test]
fn flows_that_come_later_try_again() {
    let (server, began, seen) = (serve(settings()), Instant::now(), AtomicU32::new(0));
    // From when the path is loaded on, two of three connections are closed at once.
    let at = peer(move |near| {
        let number = seen.fetch_add(1, Ordering::Relaxed);
        if began.elapsed() < Duration::from_secs(5) || number.is_multiple_of(3) {
            join(&near, &TcpStream::connect(server).unwrap());
        }
    });
    let both = Options {
        directions: vec![Direction::Both],
        streams: None,
        rate: None,
        max_time: Duration::from_secs(11),
        ..options(at)
    };
    let measured = outcome(&both).unwrap();
    let loaded = measured.under(Direction::Both).unwrap();
    let (down, up) = (loaded.down.as_ref().unwrap(), loaded.up.as_ref().unwrap());
    let most = down.flow_goodput_mbit.len().max(up.flow_goodput_mbit.len());
    let flows = loaded.working_conditions.unwrap().flows;
    assert!(most > 4, "{most} of {flows}");
}

#[test]
fn without_udp_there_is_still_a_measurement() {
    // The proxy of TCP has another port than the server, where no datagrams are answered.
    let at = between(serve(settings()), Duration::from_secs(60), |_, _| {});
    let down = Options { directions: vec![Direction::Download], ..options(at) };
    let measured = outcome(&down).unwrap();
    let loaded = measured.under(Direction::Download).unwrap();
    assert!(loaded.rtt(Method::Udp).is_none() && loaded.rtt(Method::Tcp).is_some());
    assert!(measured.grade.is_some() && !loaded.qoo.is_empty());
}

/// A connection from an address of one's own, all of 127.0.0.0/8 being this machine's.
fn connect_from(from: u32, at: SocketAddr) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    let address = Ipv4Addr::from_bits(0x7f01_0000 + from);
    socket.bind(&SocketAddr::from((address, 0)).into()).ok()?;
    socket.connect_timeout(&at.into(), Duration::from_secs(1)).ok()?;
    Some(socket.into())
}

#[test]
fn ten_thousand_connections_harm_nobody() {
    let at = serve(settings());
    // From one address and from hundreds: closed at once, held without a word, or with garbage.
    let storm = thread::spawn(move || {
        let mut held = VecDeque::new();
        for number in 0..10_000_u32 {
            let from = if number % 2 == 0 { 1 } else { number % 700 };
            let Some(mut stream) = connect_from(from, at) else { continue };
            match number % 3 {
                0 => {}
                1 => drop(stream.write_all(b"\x16\x03\x01\x02\x00garbage\n")),
                _ => held.push_back(stream),
            }
            if held.len() > 600 {
                held.pop_front();
            }
        }
        // The server has long let go of most of these.
        held.len()
    });
    let few = Options {
        directions: vec![Direction::Download],
        max_time: Duration::from_secs(4),
        ..options(at)
    };
    let mut measured = 0;
    while !storm.is_finished() || measured == 0 {
        assert!(outcome(&few).unwrap().bytes > 1_000_000);
        measured += 1;
    }
    assert_eq!(storm.join().unwrap(), 600);
}

#[test]
fn a_slow_or_silent_client_is_sent_away() {
    let at = serve(settings());
    let mut slow = TcpStream::connect(at).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let began = Instant::now();
    let writer = slow.try_clone().unwrap();
    thread::spawn(move || {
        // A byte now and then does not put it off.
        while (&writer).write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(500));
        }
    });
    let mut said = Vec::new();
    let _ = slow.read_to_end(&mut said);
    let took = began.elapsed();
    assert!((9.0..15.0).contains(&took.as_secs_f64()), "{took:?}");
    assert!(String::from_utf8_lossy(&said).starts_with("{\"hello\":"));
}

#[test]
fn datagrams_are_not_answered_to_strangers() {
    let at = serve(settings());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    for bytes in [&b"x"[..], &[0; 40], &[b"dqm1".as_slice(), &[0; 36]].concat(), &[0; 65_000]] {
        socket.send_to(bytes, at).unwrap();
    }
    assert!(socket.recv(&mut [0; 64]).is_err());
}

#[test]
fn datagrams_are_answered_from_the_address_that_was_asked() {
    let server = Server::open(&["0.0.0.0:0".parse().unwrap()], settings()).unwrap();
    let port = server.addresses()[0].port();
    thread::spawn(move || server.run());
    // Not the one that the kernel would choose for an answer.
    let at = SocketAddr::from((Ipv4Addr::new(127, 0, 0, 5), port));
    let few = Options {
        directions: vec![Direction::Download],
        max_bytes: Some(Bytes(500_000)),
        ..options(at)
    };
    let measured = outcome(&few).unwrap();
    let udp = measured.idle.pings.iter().find(|ping| ping.method == Method::Udp).unwrap();
    assert!(udp.rtt.is_some(), "{udp:?}");
}
