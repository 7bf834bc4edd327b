//! Numbers as C's `strtod` and `strtoul` read them, and `%g` as `printf` writes it: tc accepts and prints what those do,
//! and so must we, to accept and refuse the same command lines.

/// Reads the longest prefix of `text` that is a floating-point number, as `strtod` does in the C locale: decimal,
/// hexadecimal (`0x1p-3`), `inf`, `nan`. Returns it with the rest; `None` if there is no number at all.
#[must_use]
pub fn strtod(text: &str) -> Option<(f64, &str)> {
    let (negative, unsigned) = sign(text.trim_start_matches(is_c_space));
    let (magnitude, rest) =
        hexadecimal(unsigned).or_else(|| decimal(unsigned)).or_else(|| named(unsigned))?;
    Some((if negative { -magnitude } else { magnitude }, rest))
}

/// Reads `text` as `strtof` does: one rounding, straight to single precision. The whole word must be a number.
#[must_use]
pub fn strtof_word(text: &str) -> Option<f32> {
    let (value, rest) = strtod(text)?;
    if !rest.is_empty() {
        return None;
    }
    // Through double precision a decimal would be rounded twice.
    Some(text.trim_start_matches(is_c_space).parse().unwrap_or(value as f32))
}

/// Reads the longest prefix of `text` that is an integer, as `strtoul` does with 64-bit `unsigned long`: an optional
/// sign, `0x` and a leading `0` taken as hexadecimal and octal if `base` is 0; a minus wraps around. Returns it with the
/// rest; `None` if there is none or it does not fit.
#[must_use]
pub fn strtoul(text: &str, base: u32) -> Option<(u64, &str)> {
    let (negative, digits) = sign(text.trim_start_matches(is_c_space));
    let (magnitude, rest) = integer(digits, base)?;
    let magnitude = u64::try_from(magnitude).ok()?;
    Some((if negative { magnitude.wrapping_neg() } else { magnitude }, rest))
}

/// As [`strtoul`], but signed: `strtol`.
#[must_use]
pub fn strtol(text: &str, base: u32) -> Option<(i64, &str)> {
    let (negative, digits) = sign(text.trim_start_matches(is_c_space));
    let (magnitude, rest) = integer(digits, base)?;
    let magnitude = i128::try_from(magnitude).ok()?;
    let value = i64::try_from(if negative { -magnitude } else { magnitude }).ok()?;
    Some((value, rest))
}

/// The number before `unit` in `word`, if it is written in digits alone: doubles, which tc computes with, hold whole
/// numbers up to 2⁵³ only.
pub(crate) fn whole(word: &str, unit: &str) -> Option<u64> {
    let digits = word.strip_suffix(unit)?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// `value` as `printf("%.{digits}g")` writes it.
#[must_use]
pub fn format_g(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs())
    } else {
        let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
        trim_zeros(&format!("{value:.decimals$}")).to_owned()
    }
}

/// A double as an amd64 C compiler turns it into an `unsigned int`: cut towards zero, then the low 32 bits. tc does this
/// with every time, so 5000s (of microseconds) comes out as 705.032704s.
#[must_use]
pub fn c_unsigned(value: f64) -> u32 {
    let in_range = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    if in_range.contains(&value) { value as i64 as u32 } else { 0 }
}

fn is_c_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

fn sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// Splits off the leading characters that `accept` takes.
fn take_while(text: &str, accept: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !accept(byte)).unwrap_or(text.len());
    text.split_at(end)
}

fn integer(text: &str, base: u32) -> Option<(u128, &str)> {
    let hexadecimal = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (digits, base) = match (base, hexadecimal) {
        (0 | 16, Some(rest)) => (rest, 16),
        (0, None) if text.starts_with('0') => (text, 8),
        (0, None) => (text, 10),
        (base, _) => (text, base),
    };
    let (number, rest) = take_while(digits, |byte| char::from(byte).is_digit(base));
    // More digits than 128 bits hold are out of every caller's range.
    u128::from_str_radix(number, base).ok().map(|value| (value, rest))
}

fn decimal(text: &str) -> Option<(f64, &str)> {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let (whole, mut rest) = take_while(text, is_digit);
    let mut digits = whole.len();
    if let Some(after_point) = rest.strip_prefix('.') {
        let (fraction, after) = take_while(after_point, is_digit);
        digits += fraction.len();
        if digits > 0 {
            rest = after;
        }
    }
    if digits == 0 {
        return None;
    }
    if let Some(after_e) = rest.strip_prefix(['e', 'E']) {
        let (exponent, after) = take_while(sign(after_e).1, is_digit);
        if !exponent.is_empty() {
            rest = after;
        }
    }
    let number = &text[..text.len() - rest.len()];
    Some((number.parse().ok()?, rest))
}

fn hexadecimal(text: &str) -> Option<(f64, &str)> {
    let is_digit = |byte: u8| byte.is_ascii_hexdigit();
    let body = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let (whole, mut rest) = take_while(body, is_digit);
    let mut fraction = "";
    if let Some(after_point) = rest.strip_prefix('.') {
        let (digits, after) = take_while(after_point, is_digit);
        if !whole.is_empty() || !digits.is_empty() {
            (fraction, rest) = (digits, after);
        }
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut exponent = 0;
    if let Some(after_p) = rest.strip_prefix(['p', 'P']) {
        let (negative, digits) = sign(after_p);
        let (digits, after) = take_while(digits, |byte| byte.is_ascii_digit());
        if !digits.is_empty() {
            let magnitude: i32 = digits.parse().unwrap_or(i32::MAX / 2).min(100_000);
            exponent = if negative { -magnitude } else { magnitude };
            rest = after;
        }
    }
    let mut value = 0.0_f64;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let shift = exponent - 4 * i32::try_from(fraction.len()).unwrap_or(i32::MAX / 8);
    Some((value * f64::from(shift).exp2(), rest))
}

fn named(text: &str) -> Option<(f64, &str)> {
    let strip = |word: &str| {
        text.get(..word.len())
            .filter(|prefix| prefix.eq_ignore_ascii_case(word))
            .map(|_| &text[word.len()..])
    };
    if let Some(rest) = strip("infinity").or_else(|| strip("inf")) {
        return Some((f64::INFINITY, rest));
    }
    let rest = strip("nan")?;
    // C also takes an implementation-defined sequence in brackets.
    let bracketed = rest.strip_prefix('(').and_then(|inside| {
        let (_, after) = take_while(inside, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        after.strip_prefix(')')
    });
    Some((f64::NAN, bracketed.unwrap_or(rest)))
}

fn trim_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strtod_reads_what_c_reads() {
        let read = |text| strtod(text).map(|(value, rest)| (value.to_string(), rest));
        let is = |value: &str, rest| Some((value.to_owned(), rest));
        assert_eq!(read("15ms"), is("15", "ms"));
        assert_eq!(read("1.5"), is("1.5", ""));
        assert_eq!(read(".5s"), is("0.5", "s"));
        assert_eq!(read("5."), is("5", ""));
        assert_eq!(read("1e3us"), is("1000", "us"));
        assert_eq!(read("1e"), is("1", "e"));
        assert_eq!(read("1e+"), is("1", "e+"));
        assert_eq!(read("-2.5e-1x"), is("-0.25", "x"));
        assert_eq!(read("+7"), is("7", ""));
        assert_eq!(read("0x10ms"), is("16", "ms"));
        assert_eq!(read("0x1.8p1"), is("3", ""));
        assert_eq!(read("0xg"), is("0", "xg"));
        assert_eq!(read("infinity"), is("inf", ""));
        assert_eq!(read("INFms"), is("inf", "ms"));
        assert_eq!(read("nan(x)s"), is("NaN", "s"));
        for nothing in ["", ".", "ms", "-", "e5", "+-1", "é"] {
            assert_eq!(read(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn strtof_rounds_once() {
        // Just above the middle between two floats: double precision lands on the middle, which would then round down.
        let above_middle = "1.00000005960464477541";
        assert_eq!(strtof_word(above_middle), Some(1.000_000_1));
        assert_eq!(strtof_word("1x"), None);
        assert_eq!(strtof_word("0x10"), Some(16.0));
    }

    #[test]
    fn strtoul_wraps_a_minus_and_knows_its_bases() {
        assert_eq!(strtoul("100p", 10), Some((100, "p")));
        assert_eq!(strtoul("-1", 10), Some((u64::MAX, "")));
        assert_eq!(strtoul("0x10", 10), Some((0, "x10")));
        assert_eq!(strtoul("18446744073709551616", 10), None);
        assert_eq!(strtol("0x10", 0), Some((16, "")));
        assert_eq!(strtol("010", 0), Some((8, "")));
        assert_eq!(strtol("0", 0), Some((0, "")));
        assert_eq!(strtol("08", 0), Some((0, "8")));
        assert_eq!(strtol("-5", 0), Some((-5, "")));
        assert_eq!(strtol("x", 0), None);
    }

    #[test]
    fn g_as_printf_writes_it() {
        for (value, digits, expected) in [
            (0.0, 6, "0"),
            (0.15625, 6, "0.15625"),
            (3.195_312_5, 6, "3.19531"),
            (5_000_000.0, 6, "5e+06"),
            (999_999.5, 6, "1e+06"),
            (16.666, 3, "16.7"),
            (167.0, 3, "167"),
            (4_294.967_295, 3, "4.29e+03"),
            (0.000_012_5, 3, "1.25e-05"),
            (0.000_125, 2, "0.00013"),
            (100.0, 3, "100"),
        ] {
            assert_eq!(format_g(value, digits), expected);
        }
    }

    #[test]
    fn doubles_become_unsigned_as_on_amd64() {
        assert_eq!(c_unsigned(1500.9), 1500);
        assert_eq!(c_unsigned(5e9), 705_032_704);
        assert_eq!(c_unsigned(-1.0), u32::MAX);
        assert_eq!(c_unsigned(1e30), 0);
        assert_eq!(c_unsigned(f64::NAN), 0);
    }
}
