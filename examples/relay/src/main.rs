//! `relay LISTEN TARGET BITS_PER_SECOND`: `relay 127.0.0.1:5000 127.0.0.1:6000 20000000`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use tokio::net::UdpSocket;

/// It ends when nothing comes for so long.
const IDLE: Duration = Duration::from_secs(60);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [listen, target, rate] = words.as_slice() else { return usage() };
    let (Ok(listen), Ok(target), Ok(rate)) =
        (listen.parse::<SocketAddr>(), target.parse::<SocketAddr>(), rate.parse::<u64>())
    else {
        return usage();
    };
    let done =
        async { dualq_relay::relay(UdpSocket::bind(listen).await?, target, rate, IDLE).await };
    match done.await {
        Ok(done) => {
            println!("{done:?}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "error: give LISTEN TARGET BITS_PER_SECOND, such as 127.0.0.1:5000 127.0.0.1:6000 20000000"
    );
    ExitCode::from(2)
}
