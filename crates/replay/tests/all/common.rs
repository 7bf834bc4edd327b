//! Compressors, as far as tests need them.

use flate2::Crc;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

fn sum(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

/// A number as xz writes it: seven bits a byte, the lowest first.
fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(0x80 | (value % 0x80) as u8);
        value /= 0x80;
    }
    bytes.push(value as u8);
    bytes
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// An xz file whose LZMA2 chunks are stored as they are (The .xz File Format 1.2.1). A real encoder would be a feature of the reader's crate, and
/// the whole program would be compiled a second time for these tests. What the real xz has compressed, the recorded vectors are.
pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    // Its checks are CRC32.
    const FLAGS: [u8; 2] = [0, 1];
    let mut file = b"\xfd7zXZ\0".to_vec();
    file.extend(FLAGS);
    file.extend(sum(&FLAGS));

    // Twelve bytes with their sum; one filter, LZMA2, its one property: a dictionary of a mebibyte.
    let header = [2, 0, 0x21, 1, 16, 0, 0, 0];
    let mut block = header.to_vec();
    block.extend(sum(&header));
    for (index, chunk) in bytes.chunks(1 << 12).enumerate() {
        // The first one resets the dictionary.
        block.push(if index == 0 { 1 } else { 2 });
        block.extend(((chunk.len() - 1) as u16).to_be_bytes());
        block.extend(chunk);
    }
    block.push(0);
    let unpadded = block.len() + 4;
    pad(&mut block);
    block.extend(sum(bytes));
    file.extend(block);

    let mut index = [vec![0, 1], number(unpadded), number(bytes.len())].concat();
    pad(&mut index);
    index.extend(sum(&index.clone()));
    let mut footer = (index.len() as u32 / 4 - 1).to_le_bytes().to_vec();
    footer.extend(FLAGS);
    file.extend(index);
    file.extend(sum(&footer));
    file.extend(footer);
    file.extend(b"YZ");
    file
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}
