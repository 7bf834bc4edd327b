//! Putting a queue discipline on an interface that has just appeared.

use dualq_qdisc::QdiscLine;

use super::change::qdisc;
use super::{ApplyError, Host};

impl Host {
    /// Puts what `line` asks for at the root of `dev`, unless it is there. Whether it did.
    ///
    /// # Errors
    /// If there is no such interface, or the kernel refuses.
    pub fn on_boot(&mut self, dev: &str, line: &QdiscLine) -> Result<bool, ApplyError> {
        let link = self.netlink.link(dev)?;
        if qdisc::is(&self.netlink.qdiscs(link.index)?, line.spec(), &link) {
            return Ok(false);
        }
        qdisc::put(&mut self.netlink, &link, line.spec(), &mut |_| {})?;
        Ok(true)
    }
}
