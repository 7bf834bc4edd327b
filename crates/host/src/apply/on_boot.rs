//! Putting a queue discipline on an interface that has just appeared.

use super::change::qdisc;
use super::{ApplyError, Host, bounds};

impl Host {
    /// Puts what `line` asks for at the root of `dev`, unless it is there. Whether it did.
    ///
    /// # Errors
    /// If there is no such interface, the line is wrong, or the kernel refuses.
    pub fn on_boot(&mut self, dev: &str, line: &str) -> Result<bool, ApplyError> {
        let spec = bounds::line(line)?;
        let link = self.netlink.link(dev)?;
        if qdisc::is(&self.netlink.qdiscs(link.index)?, &spec, &link) {
            return Ok(false);
        }
        qdisc::put(&mut self.netlink, &link, &spec, &mut |_| {})?;
        Ok(true)
    }
}
