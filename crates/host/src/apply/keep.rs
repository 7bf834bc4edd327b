//! The process that puts routes back.
//!
//! A queue discipline stays with its interface until that is gone, which udev and the like tell. A route goes when its interface is set down, or when
//! whoever configures it does so anew, and nobody is called for that. So what the rules call starts a process that listens to the
//! kernel.

use std::thread;
use std::time::{Duration, Instant};

use dualq_netlink::RouteMonitor;

use super::change::file::Place;
use super::change::route;
use super::store::Keep;
use super::{ApplyError, Host};
use crate::plan::{CALLING, Destination, routes_put_back};

/// Routes come several at once; and whoever takes one away each time is answered no faster than this.
const SETTLE: Duration = Duration::from_millis(500);
/// So often it is looked anyway.
const LOOK: Duration = Duration::from_secs(60);
/// What does not succeed is tried again, for so long: at boot, disks come late.
const RETRY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(600);

impl Host {
    /// Puts the routes back that this machine's rules call for, whenever they are not there and the way by their interface is, until
    /// no rule calls for one. Whatever somebody else has to exactly that destination stays. If another process does this already,
    /// there is nothing to do.
    ///
    /// # Errors
    /// What still failed after ten minutes.
    pub fn keep_routes(&mut self) -> Result<(), ApplyError> {
        let monitor = RouteMonitor::open()?;
        let mut until = Instant::now() + PATIENCE;
        let mut kept: Option<Keep> = None;
        loop {
            match self.put_routes_back(&mut kept) {
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
    fn put_routes_back(&mut self, kept: &mut Option<Keep>) -> Result<bool, ApplyError> {
        if kept.is_none() {
            let Some(keep) = self.store.keep_routes()? else { return Ok(false) };
            *kept = Some(keep);
        }
        // Whoever takes a plan back has it from before the first file goes until the route is gone.
        let lock = self.store.wait_for_lock()?;
        let routes = self.routes_to_keep()?;
        for (dev, to, mtu) in &routes {
            // Mostly there is no way yet, of which the next route tells.
            let _ = route::put_back(&mut self.netlink, dev, *to, *mtu);
        }
        if routes.is_empty() {
            // Who has confirmed a plan looks for that after this lock.
            *kept = None;
        }
        drop(lock);
        Ok(!routes.is_empty())
    }

    /// The routes that rules of this machine call for: by which interface, where to, and with which MTU.
    ///
    /// # Errors
    /// If a rule cannot be read.
    pub fn routes_to_keep(&self) -> Result<Vec<(String, Destination, u32)>, ApplyError> {
        let state = std::path::absolute(self.store.folder())
            .map_err(ApplyError::io("find the current folder"))?;
        let mut routes = Vec::new();
        for path in CALLING {
            if let Some(file) = Place::find(&self.root, path)?.read()? {
                routes.extend(routes_put_back(path, &file.content, &state.to_string_lossy()));
            }
        }
        Ok(routes)
    }
}
