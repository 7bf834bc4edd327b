//! What either end of a measurement could be sent: reading it ends, keeps little, and what was read is written as it can be read again.
#![no_main]

use dualq_measure::Url;
use dualq_measure::protocol::{
    BlockReader, Datagram, FromClient, FromServer, LONGEST_LINE, LineReader, read, write,
};
use libfuzzer_sys::fuzz_target;

/// A message that was read is the same when it was written and read again.
macro_rules! again {
    ($message:ty, $line:expr) => {
        if let Ok(message) = read::<$message>($line) {
            let line = String::from_utf8(write(&message)).expect("lines are text");
            assert_eq!(read::<$message>(line.trim_end()).as_ref(), Ok(&message));
        }
    };
}

fuzz_target!(|bytes: &[u8]| {
    let mut lines = LineReader::new(LONGEST_LINE);
    for part in bytes.chunks(7) {
        lines.push(part);
        while let Ok(Some(line)) = lines.next_line() {
            again!(FromClient, &line);
            again!(FromServer, &line);
        }
    }
    let mut whole = BlockReader::default();
    let mut numbers = Vec::new();
    let is_right = whole.push(bytes, |number| numbers.push(number));
    let (mut cut, mut again) = (BlockReader::default(), Vec::new());
    let are_right = bytes.chunks(5).all(|part| cut.push(part, |number| again.push(number)));
    assert_eq!((is_right, numbers), (are_right, again));
    if let Some(url) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<Url>().ok()) {
        assert_eq!(url.to_string().parse::<Url>(), Ok(url));
    }
    if let Some(datagram) = Datagram::read(bytes) {
        // A question may go on with anything.
        assert!(bytes.starts_with(&datagram.write()));
    }
});
