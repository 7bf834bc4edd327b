//! The colours of lines: what people with any cones, or without one kind, tell apart, on either ground, and the same in all pictures.

const PAGE: &str = include_str!("../src/html/page/colours.js");
const STYLES: &str = include_str!("../src/html/page/page.css");
const CANVAS: &str = include_str!("../src/svg/canvas.rs");

type Rgb = [f64; 3];

/// What a colour is to whom (Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency",
/// 2009, severity 1), in linear light.
const EYES: [(&str, [Rgb; 3]); 4] = [
    ("all cones", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protanopia",
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ),
    (
        "deuteranopia",
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ),
    (
        "tritanopia",
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ),
];

/// sRGB to linear light (IEC 61966-2-1) to CIE XYZ, in shares of the white D65.
const TO_XYZ: [Rgb; 3] =
    [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]];

fn times(matrix: &[Rgb; 3], colour: Rgb) -> Rgb {
    matrix.map(|row| row.iter().zip(colour).map(|(one, other)| one * other).sum())
}

fn linear(colour: &str) -> Rgb {
    [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

/// CIE L*a*b*.
fn lab(colour: Rgb) -> Rgb {
    let [x, y, z] = times(&TO_XYZ, colour)
        .map(|share| if share > 0.008856 { share.cbrt() } else { 7.787 * share + 16.0 / 116.0 });
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn distance(one: Rgb, other: Rgb) -> f64 {
    one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
}

/// The contrast of WCAG 2.
fn contrast(one: Rgb, other: Rgb) -> f64 {
    let [one, other] = [one, other].map(|colour| times(&TO_XYZ, colour)[1]);
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// The colours that stand in a list of the page's script.
fn listed(name: &str) -> Vec<&'static str> {
    let line = PAGE.lines().find(|line| line.starts_with(&format!("const {name} = ["))).unwrap();
    line.split('"').filter(|word| word.starts_with('#')).collect()
}

#[test]
fn colours_are_told_apart_by_everybody_and_seen_on_their_ground() {
    let papers: Vec<&str> = STYLES.split("--paper: ").skip(1).map(|rest| &rest[..7]).collect();
    assert_eq!(papers, ["#fff; -", "#14181d"]);
    for (name, paper) in [("LIGHT", "#ffffff"), ("DARK", papers[1])] {
        let colours = listed(name);
        for (at, one) in colours.iter().enumerate() {
            let seen = contrast(linear(one), linear(paper));
            assert!(seen >= 4.5, "{name}: {one} has a contrast of {seen:.2}");
            for (other, (eyes, matrix)) in
                colours[..at].iter().flat_map(|other| EYES.map(|eyes| (other, eyes)))
            {
                let [one_seen, other_seen] = [one, other].map(|colour| {
                    lab(times(&matrix, linear(colour)).map(|part| part.clamp(0.0, 1.0)))
                });
                let apart = distance(one_seen, other_seen);
                assert!(apart >= 20.0, "{name}, {eyes}: {one} and {other} are {apart:.0} apart");
            }
        }
    }
}

#[test]
fn pictures_and_plots_have_the_colours_of_the_page() {
    for (name, begins) in [("LIGHT", 0), ("DARK", CANVAS.find("prefers-color-scheme").unwrap())] {
        for (number, colour) in listed(name).iter().enumerate() {
            let class = format!(".c{number}{{stroke:{colour};fill:{colour}}}");
            assert!(CANVAS[begins..].contains(&class), "{name}: no {class}");
        }
    }
    let plots = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/dualq/plot.py");
    let plots = std::fs::read_to_string(plots).unwrap();
    let line = plots.lines().find(|line| line.starts_with("COLOURS = [")).unwrap();
    let colours: Vec<&str> = line.split('"').filter(|word| word.starts_with('#')).collect();
    assert_eq!(colours, listed("LIGHT"));
}
