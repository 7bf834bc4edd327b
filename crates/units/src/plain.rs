//! What the system says of an error.

use std::fmt::Display;

/// An error in the system's words, without the number that the library puts behind them.
#[must_use]
pub fn plain(error: &dyn Display) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_number_is_left_out() {
        let error = io::Error::from_raw_os_error(2);
        assert_eq!(plain(&error), "No such file or directory");
        assert_eq!(plain(&io::Error::other("no more")), "no more");
    }
}
