//! The secret that both ends know, and the proofs of it: it never crosses the path itself.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Bytes of a token.
const TOKEN_BYTES: usize = 32;
/// Bytes of a challenge, a session's name and a cookie.
pub(crate) const NONCE_BYTES: usize = 16;
/// Bytes of a proof: all of HMAC-SHA-256 (RFC 2104, FIPS 180-4).
pub(crate) const PROOF_BYTES: usize = 32;

/// The secret that a server and those who may measure with it share.
#[derive(Clone, PartialEq, Eq)]
pub struct Token([u8; TOKEN_BYTES]);

/// Why a text is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token is a line of 64 hexadecimal digits, as `dualq serve --new FILE` writes it")]
pub struct TokenError;

/// Whose proof it is, so that nobody can send a proof back to where it came from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prover {
    Client,
    Server,
}

impl Token {
    /// A token of these bytes, which should come from a source that nobody can guess.
    #[must_use]
    pub const fn new(bytes: [u8; TOKEN_BYTES]) -> Self {
        Self(bytes)
    }

    /// A token that nobody can guess.
    ///
    /// # Errors
    /// If the system has no random numbers.
    #[cfg(target_os = "linux")]
    pub fn random() -> std::io::Result<Self> {
        random().map(Self)
    }

    /// The token as its file has it: 64 hexadecimal digits.
    #[must_use]
    pub fn to_text(&self) -> String {
        to_hex(&self.0)
    }

    fn keyed(&self, prover: Prover, challenges: [&[u8; NONCE_BYTES]; 2]) -> Hmac<Sha256> {
        let who: &[u8] = match prover {
            Prover::Client => b"dualq measure 1 client",
            Prover::Server => b"dualq measure 1 server",
        };
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        // All are of fixed lengths for a prover, so that no two inputs run into each other.
        for part in [who, challenges[0], challenges[1]] {
            mac.update(part);
        }
        mac
    }

    /// What shows that the prover knows the token: of the server's challenge, and of the client's.
    pub(crate) fn prove(
        &self,
        prover: Prover,
        challenges: [&[u8; NONCE_BYTES]; 2],
    ) -> [u8; PROOF_BYTES] {
        self.keyed(prover, challenges).finalize().into_bytes().into()
    }

    /// Whether that is the prover's proof, in the same time wherever it differs.
    pub(crate) fn verify(
        &self,
        prover: Prover,
        challenges: [&[u8; NONCE_BYTES]; 2],
        proof: &[u8; PROOF_BYTES],
    ) -> bool {
        self.keyed(prover, challenges).verify_slice(proof).is_ok()
    }
}

/// Bytes that nobody can guess.
#[cfg(target_os = "linux")]
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    // Up to 256 bytes come whole (getrandom(2)).
    if got == N { Ok(bytes) } else { Err(std::io::Error::other("too few random numbers")) }
}

impl FromStr for Token {
    type Err = TokenError;

    /// Reads a token's file; white space around it is nothing.
    fn from_str(text: &str) -> Result<Self, TokenError> {
        from_hex(text.trim()).map(Self).ok_or(TokenError)
    }
}

impl fmt::Debug for Token {
    /// Not the secret: it would be in logs.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

/// Lower-case hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(value.into(), 16).expect("four bits are a digit")
}

/// Exactly so many bytes as hexadecimal digits.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digit = |of: u8| char::from(of).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_reads_back_and_shows_itself_to_nobody() {
        let token = Token::new([0xa5; 32]);
        assert_eq!(format!("{}\n", token.to_text()).parse(), Ok(token.clone()));
        assert_eq!(format!("{token:?}"), "Token");
        for wrong in ["", "a5", &"g5".repeat(32), &"a5".repeat(33), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Token>(), Err(TokenError), "{wrong}");
        }
    }

    #[test]
    fn a_proof_is_of_one_token_one_prover_and_both_challenges() {
        let (token, other) = (Token::new([1; 32]), Token::new([2; 32]));
        let challenges = [&[3; 16], &[4; 16]];
        let proof = token.prove(Prover::Client, challenges);
        assert!(token.verify(Prover::Client, challenges, &proof));
        assert!(!token.verify(Prover::Server, challenges, &proof));
        assert!(!token.verify(Prover::Client, [&[4; 16], &[3; 16]], &proof));
        assert!(!other.verify(Prover::Client, challenges, &proof));
    }
}
