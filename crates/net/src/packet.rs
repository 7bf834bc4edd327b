use dualq_qdisc::FlowPacket;

/// What elements ask of a packet, beside what queue disciplines do.
pub trait Packet: FlowPacket {
    /// Sets the ECN field to Not-ECT, as devices do that know nothing of ECN.
    fn clear_ecn(&mut self);

    /// Bytes of the IP packet; of an aggregate, those of its largest segment. What an [`Mtu`](crate::Mtu) looks at.
    fn ip_bytes(&self) -> u32 {
        self.length().saturating_sub(dualq_qdisc::Device::ETHERNET_HEADER)
    }

    /// Whose packet it is: what the lanes of a [`Delay`](crate::Delay) are given by.
    fn origin(&self) -> u32 {
        0
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use dualq_qdisc::{Ecn, FlowPacket};

    /// A packet that can be told from others.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub(crate) struct Probe {
        pub(crate) number: u32,
        pub(crate) origin: u32,
        pub(crate) length: u32,
        pub(crate) ecn: Ecn,
    }

    impl dualq_qdisc::Packet for Probe {
        fn length(&self) -> u32 {
            self.length
        }

        fn memory(&self) -> u32 {
            self.length
        }

        fn ecn(&self) -> Ecn {
            self.ecn
        }

        fn set_ce(&mut self) {
            self.ecn = Ecn::Ce;
        }
    }

    impl FlowPacket for Probe {
        fn flow(&self) -> u32 {
            self.origin
        }
    }

    impl super::Packet for Probe {
        fn clear_ecn(&mut self) {
            self.ecn = Ecn::NotEct;
        }

        fn origin(&self) -> u32 {
            self.origin
        }
    }
}
