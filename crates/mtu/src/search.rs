//! The search for the largest packet that gets through, without a socket or a clock.
//!
//! Whoever drives it sends what [`Search::step`] asks for, tells by [`Search::heard`] what comes back, and calls
//! [`Search::round_over`] when nothing more is to be expected. An answer proves that a size gets through; that it does not is
//! proved by a router that says so, or made likely by silence. Silence is also what a lossy path and a router that
//! limits its ICMP give, so small packets are sent beside the large ones: only if losing all of the large ones would be
//! a rare chance at the loss that the small ones meet, it is their size.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// The smallest packets that are sent: every IPv4 link must carry 68 bytes (RFC 791 §3.2), and IPv6's headers fit too.
pub const SMALLEST: u16 = 68;

/// How small the chance must be that packets of one size were lost by accident, all of them, to say that it was their size.
const CHANCE: f64 = 1e-5;

/// After so much silence a size is put aside for now. The one at the border is asked for again.
const QUICK_TRIES: u32 = 2;

/// After so much silence to the smallest packets, nobody answers.
const NO_ANSWER_TRIES: u32 = 9;

/// Never more packets of one size at once, lest they meet a limit of rate instead of one of size.
const LARGEST_ROUND: u32 = 4;

/// Sizes that paths often have: Ethernet and its jumbo frames, and what PPPoE, tunnels and VPNs leave of it.
const COMMON: [u16; 24] = [
    576, 1006, 1280, 1358, 1360, 1380, 1390, 1400, 1406, 1412, 1420, 1422, 1428, 1436, 1438, 1440,
    1446, 1450, 1460, 1472, 1476, 1480, 1492, 1500,
];
/// The same above Ethernet's.
const JUMBO: [u16; 5] = [4352, 8900, 8950, 9000, 9180];

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It reached the host.
    Arrived,
    /// Somebody says that it is too big.
    TooBig(Refusal),
}

/// The word of a router, or of this machine's own kernel, that a packet is too big (RFC 1191 §4, RFC 4443 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The packet's size.
    pub size: u16,
    /// What would fit, if it says so; routers before RFC 1191 do not.
    pub mtu: Option<u16>,
    /// Who says so; `None` for this machine itself.
    pub by: Option<IpAddr>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send packets of these sizes, and wait for the answers.
    Send(Vec<u16>),
    /// Nothing more.
    Done(Found),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The largest size that got through; `None` if the host answered nothing.
    pub largest: Option<u16>,
    /// What stops larger ones.
    pub limit: Limit,
    /// Who said that a packet is too big, the first word of each.
    pub refusals: Vec<Refusal>,
    /// How many packets were sent.
    pub sent: u32,
    /// How many packets of a size that does get through were sent, and how many of them remained without an answer.
    pub fitting: (u32, u32),
}

/// What stops packets that are larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing: the largest that was to be tried gets through.
    Nothing,
    /// Somebody says so.
    Refused,
    /// They vanish: so many of the next size were sent in vain, more than chance explains.
    Silence(u32),
    /// So many packets are lost of any size that it cannot be told.
    Unclear,
    /// The host does not answer at all.
    NoAnswer,
}

/// The search itself.
#[derive(Clone, Debug)]
pub struct Search {
    ceiling: u16,
    /// The largest that got through.
    low: Option<u16>,
    /// The smallest that seems not to.
    high: u16,
    /// Sizes that do not get through, and why that is certain.
    stopped: BTreeMap<u16, Stop>,
    /// A size that somebody named, to be tried.
    hint: Option<u16>,
    /// A size that somebody named, and that was tried.
    named: Option<u16>,
    trial: Trial,
    loss: Loss,
    /// What of it was known before.
    inherited: Loss,
    attempts: u32,
    refusals: Vec<Refusal>,
    sent: u32,
    unclear: bool,
}

/// Why a size is known not to get through.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Refused,
    /// So many were lost.
    Silent(u32),
}

/// One size that is being tried.
#[derive(Clone, Debug)]
struct Trial {
    size: u16,
    thorough: bool,
    /// Sent in rounds that are over, all of them lost.
    lost: u32,
    /// Sent in this round.
    pending: u32,
    /// Small packets sent beside them in this round, and those answered.
    small: (u32, u32),
}

impl Trial {
    const fn of(size: u16, thorough: bool) -> Self {
        Self { size, thorough, lost: 0, pending: 0, small: (0, 0) }
    }
}

/// What packets meet whose size is no question.
#[derive(Clone, Copy, Debug, Default)]
struct Loss {
    sent: u32,
    lost: u32,
}

impl Loss {
    /// Whether it can be chance that so many were lost. It always can where most packets are lost anyway.
    fn explains(self, tries: u32) -> bool {
        self.chance(tries) > CHANCE || self.lost * 2 > self.sent
    }

    /// The chance that `tries` more are lost, all of them, if each is lost as these were: what is known of their rate is
    /// taken in full, from no prior opinion (Laplace's rule of succession, again and again).
    fn chance(self, tries: u32) -> f64 {
        let (lost, sent) = (f64::from(self.lost), f64::from(self.sent));
        (0..tries).map(f64::from).map(|i| (lost + 1.0 + i) / (sent + 2.0 + i)).product()
    }
}

impl Search {
    /// For a size up to `ceiling`, what the interface sends at most. `hint` is a size to try early, such as what another method
    /// found. Each size is tried at most `attempts` times.
    #[must_use]
    pub fn new(ceiling: u16, hint: Option<u16>, attempts: u32) -> Self {
        let ceiling = ceiling.max(SMALLEST);
        Self {
            ceiling,
            low: None,
            high: ceiling.saturating_add(1),
            stopped: BTreeMap::new(),
            hint,
            named: None,
            trial: Trial::of(SMALLEST, true),
            loss: Loss::default(),
            inherited: Loss::default(),
            attempts: attempts.max(1),
            refusals: Vec::new(),
            sent: 0,
            unclear: false,
        }
    }

    /// With what another method saw of the loss on this path: of `sent` packets that fit, `lost` were not answered.
    #[must_use]
    pub const fn with_loss(mut self, (sent, lost): (u32, u32)) -> Self {
        self.loss = Loss { sent, lost };
        self.inherited = self.loss;
        self
    }

    /// What to do next. Each call is one round; [`round_over`](Self::round_over) ends it.
    pub fn step(&mut self) -> Step {
        if self.is_decided() {
            match self.choose() {
                Some(trial) => self.trial = trial,
                None => return Step::Done(self.found()),
            }
        }
        // The first goes alone: most often it is answered, and answers may be rationed.
        let large = if self.trial.lost > 0 && self.trial.thorough { LARGEST_ROUND } else { 1 };
        let small = if self.trial.size == SMALLEST || self.trial.lost == 0 { 0 } else { large };
        self.trial.pending = large;
        self.trial.small = (small, 0);
        self.sent += large + small;
        let mut sizes = Vec::with_capacity((large + small) as usize);
        for turn in 0..large {
            if turn < small {
                sizes.push(SMALLEST);
            }
            sizes.push(self.trial.size);
        }
        Step::Send(sizes)
    }

    /// A packet of this size was answered, in this round or, late, after it.
    pub fn heard(&mut self, size: u16, reply: Reply) {
        match reply {
            Reply::Arrived => self.arrived(size),
            Reply::TooBig(refusal) => self.refused(refusal),
        }
    }

    /// A router rejects packets whatever their size: as long as nothing has arrived, more of them would meet the same.
    pub fn rejected(&mut self) {
        if self.low.is_none() {
            self.trial.lost = NO_ANSWER_TRIES;
        }
    }

    /// Whether nothing more can be learnt in this round.
    #[must_use]
    pub fn round_is_complete(&self) -> bool {
        let (sent, answered) = self.trial.small;
        let nobody = self.low.is_none() && self.trial.lost >= NO_ANSWER_TRIES;
        nobody || (self.is_known(self.trial.size) && answered >= sent)
    }

    /// The time is up for what has not been answered.
    pub fn round_over(&mut self) {
        let trial = &mut self.trial;
        let (sent, answered) = trial.small;
        self.loss.sent += sent;
        self.loss.lost += sent.saturating_sub(answered);
        trial.small = (0, 0);
        let pending = std::mem::take(&mut trial.pending);
        if self.low.is_some_and(|low| low >= trial.size) {
            // Its size was no question, as is known now. Of the last round only the one that was answered counts: nobody waited for
            // the others.
            self.loss.sent += trial.lost + 1;
            self.loss.lost += trial.lost;
            trial.lost = 0;
            return;
        }
        trial.lost += pending;
        if trial.size == SMALLEST || self.stopped.contains_key(&trial.size) {
            return;
        }
        if !trial.thorough {
            if trial.lost >= QUICK_TRIES {
                self.high = self.high.min(trial.size);
            }
        } else if self.loss.explains(trial.lost) {
            self.unclear = trial.lost >= self.attempts;
        } else {
            self.stopped.insert(trial.size, Stop::Silent(trial.lost));
            self.high = self.high.min(trial.size);
        }
    }

    fn arrived(&mut self, size: u16) {
        if size == SMALLEST && self.trial.size != SMALLEST {
            self.trial.small.1 += 1;
        }
        if self.low.is_some_and(|low| low >= size) {
            return;
        }
        self.low = Some(size);
        // Paths change, and some have several ways: what was proved by an answer counts for more than what was refused.
        self.stopped = self.stopped.split_off(&size.saturating_add(1));
        if self.high <= size {
            let beyond = self.ceiling.saturating_add(1);
            self.high = self.stopped.first_key_value().map_or(beyond, |(stopped, _)| *stopped);
        }
    }

    fn refused(&mut self, refusal: Refusal) {
        if self.refusals.iter().all(|known| (known.by, known.mtu) != (refusal.by, refusal.mtu)) {
            self.refusals.push(refusal);
        }
        if self.low.is_none_or(|low| refusal.size > low) {
            self.stopped.insert(refusal.size, Stop::Refused);
            self.high = self.high.min(refusal.size);
            self.hint = refusal.mtu.or(self.hint);
        }
    }

    fn is_known(&self, size: u16) -> bool {
        self.low.is_some_and(|low| low >= size) || self.stopped.contains_key(&size)
    }

    fn is_decided(&self) -> bool {
        let Trial { size, thorough, lost, .. } = self.trial;
        let enough = match (size, thorough) {
            (SMALLEST, _) => NO_ANSWER_TRIES,
            (_, false) => QUICK_TRIES,
            (_, true) => self.attempts,
        };
        self.is_known(size) || lost >= enough
    }

    /// The next size, and whether one has to be sure of it; `None` if everything is known.
    fn choose(&mut self) -> Option<Trial> {
        let low = self.low?;
        if self.unclear || low >= self.ceiling || self.stopped.contains_key(&(low + 1)) {
            return None;
        }
        let open = |size: &u16| *size > low && *size < self.high;
        if let Some(hint) = self.hint.take().filter(open) {
            self.named = Some(hint);
            return Some(Trial::of(hint, false));
        }
        // What carries a size that was named, or that paths often have, very often carries no more.
        let usual = |size: u16| COMMON.contains(&size) || JUMBO.contains(&size);
        if self.high == low + 1 || usual(low) || self.named == Some(low) {
            return Some(Trial::of(low + 1, true));
        }
        if self.high > self.ceiling {
            return Some(Trial::of(self.ceiling, false));
        }
        let candidates: Vec<u16> = COMMON.iter().chain(&JUMBO).copied().filter(open).collect();
        let middle = candidates.get(candidates.len() / 2).copied();
        Some(Trial::of(middle.unwrap_or(low + (self.high - low) / 2), false))
    }

    fn found(&self) -> Found {
        let limit = match self.low {
            None => Limit::NoAnswer,
            Some(low) if low >= self.ceiling => Limit::Nothing,
            Some(_) if self.unclear => Limit::Unclear,
            // Routers ration their words; the exact one was said before, then.
            Some(low) if self.refusals.iter().any(|refusal| refusal.mtu == Some(low)) => {
                Limit::Refused
            }
            Some(low) => match self.stopped.get(&(low + 1)) {
                Some(Stop::Silent(lost)) => Limit::Silence(*lost),
                _ => Limit::Refused,
            },
        };
        Found {
            largest: self.low,
            limit,
            refusals: self.refusals.clone(),
            sent: self.sent,
            fitting: (self.loss.sent - self.inherited.sent, self.loss.lost - self.inherited.lost),
        }
    }
}
