//! A bad value of any option of any command is refused by the option's name, in one line.

use std::process::{Command, Output, Stdio};

fn dualq(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dualq"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command.output().unwrap()
}

/// Commands with what they do not go without.
const COMMANDS: [&[&str]; 19] = [
    &["run"],
    &["sweep", "--folder", "target/never"],
    &["tune", "--vary", "link.rate=1mbit..2mbit", "--aim", "max goodput"],
    &["replay", "examples/captures/two-hosts.pcap", "--rate", "20mbit"],
    &["check", "tests/data/linux-7.3/narrow.jsonl"],
    &["shell"],
    &["shell", "set"],
    &["doctor", "--recipe", "tests/data/recipes/dualpi2-bbr.md", "--rate", "20mbit"],
    &["plan"],
    &["apply"],
    &["mtu", "localhost"],
    &["watch"],
    &["verify", "fq", "--host", "localhost", "--token-file", "none"],
    &["measure", "localhost", "--token-file", "none"],
    &["serve", "--token-file", "none"],
    &["kernel", "build"],
    &["kernel", "exec"],
    &["draw"],
    &["diff", "scenarios/narrow-vps.toml"],
];

/// What takes values of these is a number, a rate, a time or a word of a list; all else may be anything.
const VALUES: [&str; 11] =
    ["N", "RATE", "RATE [QDISC]", "TIME", "PERCENT", "BYTES", "QDISC", "CC", "WORLD", "MS", "US"];

/// The options of a command whose values can be wrong, as its help names them.
fn options(command: &[&str]) -> Vec<String> {
    let words =
        command.iter().take_while(|word| !word.contains(['.', '/', '-']) && **word != "localhost");
    let words: Vec<&str> = words.copied().chain(["--help"]).collect();
    let help = String::from_utf8(dualq(&words).stdout).unwrap();
    let option = |line: &str| {
        let (_, option) = line.trim().split_once("--")?;
        let (name, value) = option.split_once(" <")?;
        let value = value.split('>').next()?;
        VALUES.contains(&value).then(|| format!("--{name}"))
    };
    help.lines().filter(|line| line.trim().starts_with('-')).filter_map(option).collect()
}

#[test]
fn a_bad_value_is_refused_by_the_options_name() {
    let mut tried = 0;
    let mut wrong = Vec::new();
    for command in COMMANDS {
        let options = options(command);
        assert!(!options.is_empty(), "{command:?}");
        for option in &options {
            // Who has it already needs it once more.
            let before: Vec<&str> = match command.iter().position(|word| word == option) {
                Some(at) => [&command[..at], &command[at + 2..]].concat(),
                None => command.to_vec(),
            };
            for bad in ["-1", "-5s", "1e400x", "x", "99999999999999999999999999"] {
                let joined = format!("{option}={bad}");
                for given in [&[option.as_str(), bad][..], &[&joined]] {
                    let output = dualq(&[&before, given].concat());
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    let errors: Vec<&str> =
                        said.lines().filter(|line| !line.starts_with("note: ")).collect();
                    tried += 1;
                    let is_well = output.status.code() == Some(2)
                        && matches!(errors.as_slice(), [one] if one.contains(option.as_str()));
                    if !is_well {
                        wrong.push(format!(
                            "{before:?} {given:?}: {:?} {said}",
                            output.status.code()
                        ));
                    }
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
    assert_eq!(wrong, [""; 0], "{}", wrong.join("\n"));
}
