//! Interfaces on others: where their packets wait at last.

use super::{Facts, Interface};

/// What an interface is made of, or a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layer<'a> {
    /// One of several networks on another interface.
    Vlan {
        /// The interface that it is on.
        on: &'a str,
    },
    /// Others as if they were one; the kernel chooses for each flow.
    Bond {
        /// Its parts.
        of: Vec<&'a str>,
    },
    /// A switch.
    Bridge {
        /// Its ports.
        of: Vec<&'a str>,
    },
    /// One of those.
    Part {
        /// The bond.
        of: &'a str,
    },
}

impl Facts {
    /// What `interface` is made of, or which bond it is a part of; `None` of most, and where nothing tells. A bridge's port is as
    /// any other interface.
    #[must_use]
    pub fn layer<'a>(&'a self, interface: &'a Interface) -> Option<Layer<'a>> {
        let kind_of =
            |name: &str| self.interfaces.iter().find(|other| other.name == name)?.driver.as_deref();
        if let Some(of) = interface.master.as_deref()
            && kind_of(of) == Some("bond")
        {
            return Some(Layer::Part { of });
        }
        let parts = || {
            let parts =
                self.interfaces.iter().filter(|part| part.master.as_ref() == Some(&interface.name));
            parts.map(|part| part.name.as_str()).collect()
        };
        match interface.driver.as_deref()? {
            "vlan" => interface.lower.as_deref().map(|on| Layer::Vlan { on }),
            "bond" => Some(Layer::Bond { of: parts() }),
            "bridge" => Some(Layer::Bridge { of: parts() }),
            _ => None,
        }
    }
}

impl Layer<'_> {
    /// What it is, in words: `a bond of eth0 and eth1`.
    #[must_use]
    pub fn words(&self) -> String {
        let list = |names: &[&str]| match names {
            [] => "nothing".to_owned(),
            [name] => (*name).to_owned(),
            [names @ .., last] => format!("{} and {last}", names.join(", ")),
        };
        match self {
            Self::Vlan { on } => format!("a VLAN on {on}"),
            Self::Bond { of } => format!("a bond of {}", list(of)),
            Self::Bridge { of } => format!("a bridge of {}", list(of)),
            Self::Part { of } => format!("a part of the bond {of}"),
        }
    }
}
