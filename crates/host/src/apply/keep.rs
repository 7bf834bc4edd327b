//! The process that puts back what others take away.
//!
//! A queue discipline at a root stays with its interface until that is gone, which udev and the like tell. A route goes when its interface is set
//! down, or when whoever configures it does so anew; a discipline below somebody else's class goes when they make their tree anew; and
//! nobody is called for that. So what the rules call starts a process that listens to the kernel.

use std::thread;
use std::time::{Duration, Instant};

use dualq_netlink::Monitor;

use super::change::file::Place;
use super::change::{qdisc, route};
use super::{ApplyError, Host, store};
use crate::plan::{CALLING, Kept, kept};

/// Routes and classes come several at once; and whoever takes one away each time is answered no faster than this.
const SETTLE: Duration = Duration::from_millis(500);
/// So often it is looked anyway.
const LOOK: Duration = Duration::from_secs(60);
/// What does not succeed is tried again, for so long: at boot, disks come late.
const RETRY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(600);

impl Host {
    /// Puts back what this machine's rules call for and others may take away, whenever it is not there and its place is, until no rule calls for such
    /// a thing: routes where the way by their interface is there, disciplines where a class of somebody else's is. Whatever somebody
    /// else has to exactly that destination, or in exactly that class, stays. If another process does this already, there is nothing to do.
    ///
    /// # Errors
    /// What still failed after ten minutes.
    pub fn keep(&mut self) -> Result<(), ApplyError> {
        let monitor = Monitor::open()?;
        let mut until = Instant::now() + PATIENCE;
        let mut keeping: Option<store::Keep> = None;
        loop {
            match self.put_back(&mut keeping) {
                Ok(true) => {
                    until = Instant::now() + PATIENCE;
                    if monitor.wait(LOOK)? {
                        thread::sleep(SETTLE);
                    }
                }
                Ok(false) => return Ok(()),
                Err(error) if Instant::now() > until => return Err(error),
                Err(_) => thread::sleep(RETRY),
            }
        }
    }

    /// Looks once; whether there is anything to keep.
    fn put_back(&mut self, keeping: &mut Option<store::Keep>) -> Result<bool, ApplyError> {
        if keeping.is_none() {
            let Some(keep) = self.store.keep()? else { return Ok(false) };
            *keeping = Some(keep);
        }
        // Whoever takes a plan back has it from before the first file goes until what it put there is gone.
        let lock = self.store.wait_for_lock()?;
        let all = self.to_keep()?;
        for one in &all {
            // Mostly there is no way or no class yet, of which the kernel tells when it comes.
            let _ = match one {
                Kept::Route { dev, to, mtu } => route::put_back(&mut self.netlink, dev, *to, *mtu),
                Kept::Below { dev, class, line } => {
                    qdisc::put_back(&mut self.netlink, dev, *class, line)
                }
            };
        }
        if all.is_empty() {
            // Who has confirmed a plan looks for that after this lock.
            *keeping = None;
        }
        drop(lock);
        Ok(!all.is_empty())
    }

    /// What rules of this machine call for and others may take away.
    ///
    /// # Errors
    /// If a rule cannot be read.
    pub fn to_keep(&self) -> Result<Vec<Kept>, ApplyError> {
        let state = std::path::absolute(self.store.folder())
            .map_err(ApplyError::io("find the current folder"))?;
        let mut all = Vec::new();
        for path in CALLING {
            if let Some(file) = Place::find(&self.root, path)?.read()? {
                all.extend(kept(path, &file.content, &state.to_string_lossy()));
            }
        }
        Ok(all)
    }
}
