//! Attributes of netlink messages, and fields of the structures in them, as raw bytes in the machine's byte order.

use netlink_packet_core::{NLA_ALIGNTO, NLA_F_NESTED, NLA_HEADER_SIZE, NLA_TYPE_MASK};

/// Attributes, up to the first that is cut short. They are read when they are asked for: most messages of a dump are of other devices than
/// the one that is looked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    pub(crate) const fn read(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Each kind and value, in their order.
    fn iter(self) -> impl Iterator<Item = (u16, &'a [u8])> {
        let mut bytes = self.0;
        std::iter::from_fn(move || {
            let [l0, l1, k0, k1] = *bytes.first_chunk::<NLA_HEADER_SIZE>()?;
            let length = usize::from(u16::from_ne_bytes([l0, l1]));
            let value = bytes.get(NLA_HEADER_SIZE..length)?;
            bytes = bytes.get(length.next_multiple_of(NLA_ALIGNTO)..).unwrap_or_default();
            Some((u16::from_ne_bytes([k0, k1]) & NLA_TYPE_MASK, value))
        })
    }

    /// The value of an attribute; the last counts.
    pub(crate) fn get(&self, kind: u16) -> Option<&'a [u8]> {
        self.all(kind).last()
    }

    /// The kinds of all attributes, in their order.
    pub(crate) fn kinds(&self) -> Vec<u16> {
        self.iter().map(|(kind, _)| kind).collect()
    }

    /// The values of all attributes of a kind.
    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(other, _)| *other == kind).map(|(_, value)| value)
    }

    pub(crate) fn u8(&self, kind: u16) -> Option<u8> {
        self.get(kind)?.first().copied()
    }

    pub(crate) fn u16(&self, kind: u16) -> Option<u16> {
        self.get(kind)?.first_chunk().copied().map(u16::from_ne_bytes)
    }

    pub(crate) fn u32(&self, kind: u16) -> Option<u32> {
        u32_at(self.get(kind)?, 0)
    }

    pub(crate) fn u64(&self, kind: u16) -> Option<u64> {
        u64_at(self.get(kind)?, 0)
    }

    /// A text that ends with a zero, or with the attribute.
    pub(crate) fn string(&self, kind: u16) -> Option<&'a str> {
        let value = self.get(kind)?;
        std::str::from_utf8(value.split(|byte| *byte == 0).next()?).ok()
    }

    pub(crate) fn nested(&self, kind: u16) -> Option<Self> {
        self.get(kind).map(Self::read)
    }
}

fn at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    at(bytes, offset).map(u32::from_ne_bytes)
}

pub(crate) fn i32_at(bytes: &[u8], offset: usize) -> Option<i32> {
    at(bytes, offset).map(i32::from_ne_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    at(bytes, offset).map(u64::from_ne_bytes)
}

/// Attributes that are being written.
#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// Attributes that come behind `header`.
    pub(crate) fn after(header: Vec<u8>) -> Self {
        Self(header)
    }

    pub(crate) fn put(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(NLA_HEADER_SIZE + value.len());
        let length = length.expect("dualq writes no attribute of 64 KB");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(NLA_ALIGNTO), 0);
    }

    pub(crate) fn u8(&mut self, kind: u16, value: u8) {
        self.put(kind, &[value]);
    }

    pub(crate) fn u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    pub(crate) fn u64(&mut self, kind: u16, value: u64) {
        self.put(kind, &value.to_ne_bytes());
    }

    pub(crate) fn string(&mut self, kind: u16, value: &str) {
        self.put(kind, &[value.as_bytes(), &[0]].concat());
    }

    pub(crate) fn nest(&mut self, kind: u16, write: impl FnOnce(&mut Self)) {
        let mut inside = Self::default();
        write(&mut inside);
        self.put(kind | NLA_F_NESTED, &inside.0);
    }

    /// Only what was given.
    pub(crate) fn u32_if(&mut self, kind: u16, value: Option<u32>) {
        if let Some(value) = value {
            self.u32(kind, value);
        }
    }

    /// Only what was given.
    pub(crate) fn u8_if(&mut self, kind: u16, value: Option<u8>) {
        if let Some(value) = value {
            self.u8(kind, value);
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::default();
        writer.u8(1, 7);
        writer.nest(2, |inside| {
            inside.string(3, "dualpi2");
            inside.u32(4, 1);
            inside.u32(4, 2);
        });
        writer.u64(5, u64::MAX);
        let bytes = writer.finish();
        let read = Attributes::read(&bytes);
        assert_eq!((read.u8(1), read.u64(5), read.u32(6)), (Some(7), Some(u64::MAX), None));
        let inside = read.nested(2).unwrap();
        assert_eq!((inside.string(3), inside.u32(4)), (Some("dualpi2"), Some(2)));
        assert_eq!(inside.all(4).count(), 2);
    }

    #[test]
    fn what_is_cut_short_is_not_there() {
        let mut writer = Writer::default();
        writer.u32(1, 1);
        writer.u32(2, 2);
        let mut bytes = writer.finish();
        bytes.pop();
        let read = Attributes::read(&bytes);
        assert_eq!((read.u32(1), read.u32(2)), (Some(1), None));
        assert_eq!(Attributes::read(&[3, 0, 1, 0]).get(1), None);
    }
}
