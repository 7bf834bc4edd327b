//! What shells need to know of the command line: made of the same source as `--help`.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;

use clap::builder::PossibleValue;
use clap::{Arg, Args, Command, CommandFactory as _, ValueEnum};
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};
use clap_complete::env::{CompleteEnv, Shells};
use dualq_kernel::Store;
use dualq_qdisc::about::Explained;
use dualq_qdisc::grammar::KINDS;
use dualq_tcp::Algorithm;
use dualq_units::plain;

use super::Failure;
use crate::output::print;
use crate::{examples, help};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bash, in ~/.bashrc:      source <(dualq completions bash)
  zsh, in ~/.zshrc:        source <(dualq completions zsh)
  fish, once:              dualq completions fish \\
                             > ~/.config/fish/completions/dualq.fish
  nushell, once:           dualq completions nushell | save -f dualq.nu
           in config.nu:   source dualq.nu

The shell asks dualq itself what could come next, so that scenarios, queue disciplines and congestion controls are those that it has; nushell gets a list of commands and options.";

/// By this a shell says that it asks.
const ASKED_BY: &str = "DUALQ_COMPLETE";

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Nushell,
}

/// Prints what a shell is to be told once.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let name = match args.shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
        Shell::Nushell => {
            let mut bytes = Vec::new();
            let nushell = clap_complete_nushell::Nushell;
            clap_complete::generate(nushell, &mut super::command(), "dualq", &mut bytes);
            return print(&mut io::stdout(), &String::from_utf8_lossy(&bytes));
        }
    };
    let mut bytes = Vec::new();
    let shells = Shells::builtins();
    let shell = shells.completer(name).expect("the library has it");
    let written = shell.write_registration(ASKED_BY, "dualq", "dualq", "dualq", &mut bytes);
    written.map_err(|error| Failure::Run(format!("completions: {}", plain(&error))))?;
    let text = String::from_utf8_lossy(&bytes) + more(args.shell);
    print(&mut io::stdout(), &text)
}

/// What the library leaves out.
const fn more(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish | Shell::Nushell => "",
    }
}

/// bash cuts words at `=` and `:`, and puts what it is given into the line as it is.
const BASH: &str = r#"
_dualq() {
    local words=() word glued= i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ -n $glued || ( $word =~ ^[=:]+$ && $i -gt 0 ) ]]; then
            words[${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
        [[ $word =~ ^[=:]+$ ]] && glued=yes || glued=
    done
    local last=$((${#words[@]} - 1)) cut=
    # Of the last word bash replaces only what is behind its own cut.
    [[ ${words[last]} == "$word" ]] || cut=${words[last]%"$word"}
    [[ -z $glued ]] || cut=${words[last]}
    if [[ ${word:0:1} == "'" || ${word:0:1} == '"' ]]; then
        words[last]=$cut${word:1}
    else
        words[last]=${words[last]//\\/}
    fi
    local COMP_WORDS=("${words[@]}") COMP_CWORD=$last
    _clap_complete_dualq "$1" "${words[last]}" "${3-}"
    COMPREPLY=("${COMPREPLY[@]#"$cut"}")
    # Spaces are quoted then.
    compopt -o filenames 2>/dev/null
}
complete -o nospace -o bashdefault -F _dualq dualq
"#;

/// Where compinit finds it as a file `_dualq` it is the body of a function, which is called for the first Tab.
const ZSH: &str = r#"
if [[ ${funcstack[1]-} == _dualq ]]; then
    _clap_dynamic_completer_dualq "$@"
fi
"#;

/// Answers a shell that asks, and then ends.
pub(super) fn answer(command: impl Fn() -> Command) {
    CompleteEnv::with_factory(command).var(ASKED_BY).bin("dualq").complete();
}

/// Who knows what may come.
type Words = fn() -> Vec<String>;

/// Arguments whose values are known only here: of which command, which argument, what.
const VALUES: [(&str, &str, Words); 22] = [
    ("run", "cc", controls),
    ("run", "kernel", kernels),
    ("sweep", "kernel", kernels),
    ("tune", "kernel", kernels),
    ("check", "kernel", kernels),
    ("plan", "cc", controls),
    ("plan", "dev", interfaces),
    ("measure", "cc", controls),
    ("verify", "dev", interfaces),
    ("watch", "devices", interfaces),
    ("explain", "name", explained),
    ("examples", "name", examples),
    ("help", "words", helped),
    ("run", "qdisc", kinds),
    ("shell", "qdisc", kinds),
    ("replay", "qdisc", kinds),
    ("plan", "qdisc", kinds),
    ("plan", "down_qdisc", kinds),
    ("run", "scenario", examples),
    ("sweep", "scenario", examples),
    ("tune", "scenario", examples),
    ("verify", "what", kinds),
];

/// The same of commands of `kernel`.
const OF_KERNEL: [(&str, &str, Words); 2] =
    [("remove", "version", kernels), ("exec", "kernel", kernels)];

pub(super) fn with_values(command: Command) -> Command {
    let kernel = |kernel| OF_KERNEL.iter().fold(kernel, with);
    let command = command.mut_subcommands(|one| one.mut_args(of_list));
    VALUES.iter().fold(command.mut_subcommand("kernel", kernel), with)
}

/// An argument that takes a list, none of which is worth naming twice: behind a comma come those that are not there yet.
fn of_list(arg: Arg) -> Arg {
    let Some(delimiter) = arg.get_value_delimiter() else { return arg };
    let possible = arg.get_possible_values();
    arg.add(ArgValueCompleter::new(move |begun: &OsStr| {
        let taken = list_before(delimiter, &begun.to_string_lossy());
        let left = possible.iter().filter(|value| !taken.iter().any(|one| one == value.get_name()));
        let fitting = left.filter(|value| value.get_name().starts_with(&*begun.to_string_lossy()));
        let candidate = |value: &PossibleValue| {
            CompletionCandidate::new(value.get_name()).help(value.get_help().cloned())
        };
        fitting.map(candidate).collect()
    }))
}

/// What stands in the list that is typed before its last part, which is all that the library hands over.
fn list_before(delimiter: char, last: &str) -> Vec<String> {
    let typed = env::args().filter_map(|word| {
        let list = word.strip_suffix(last)?.strip_suffix(delimiter)?;
        let list = list.rsplit_once('=').map_or(list, |(_, list)| list);
        Some(list.split(delimiter).map(str::to_owned).collect::<Vec<_>>())
    });
    typed.flatten().collect()
}

fn with(command: Command, (of, argument, known): &(&'static str, &'static str, Words)) -> Command {
    let known = *known;
    let is_file = matches!(*argument, "scenario" | "what");
    let is_qdisc = matches!(*argument, "qdisc" | "down_qdisc" | "what");
    let values = ArgValueCompleter::new(move |word: &OsStr| {
        let text = word.to_string_lossy();
        // A shell gives a word as it is typed.
        let text = text.trim_start_matches(['\'', '"']);
        let mut found = words(text, known());
        if is_qdisc {
            found.extend(options(text));
        }
        if is_file {
            found.extend(PathCompleter::file().complete(word));
        }
        found
    });
    command.mut_subcommand(of, |one| one.mut_arg(argument, |arg| arg.add(values)))
}

fn owned<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}

fn kinds() -> Vec<String> {
    owned(KINDS.iter().copied())
}

fn controls() -> Vec<String> {
    owned(Algorithm::ALL.iter().map(|control| control.name()))
}

fn explained() -> Vec<String> {
    [kinds(), controls()].concat()
}

fn examples() -> Vec<String> {
    owned(examples::names())
}

fn helped() -> Vec<String> {
    let commands = super::Cli::command();
    let commands = commands.get_subcommands().filter(|one| !one.is_hide_set());
    let commands: Vec<String> = commands.map(|one| one.get_name().to_owned()).collect();
    [commands, help::documents().collect(), explained()].concat()
}

/// The network interfaces of this machine, in order.
fn interfaces() -> Vec<String> {
    let entries = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The kernels that were built.
fn kernels() -> Vec<String> {
    let kernels = Store::open().and_then(|store| store.kernels()).unwrap_or_default();
    kernels.iter().map(|kernel| kernel.version.clone()).collect()
}

/// The line so far with each option that its discipline has and that begins as its last word.
fn options(line: &str) -> Vec<CompletionCandidate> {
    let Some((before, _)) = line.rsplit_once(' ') else { return Vec::new() };
    let kind = before.split(' ').next().unwrap_or_default();
    let Some(explained) = Explained::kind(kind) else { return Vec::new() };
    let all = explained.parameters.iter().flat_map(|valued| valued.parameter.words);
    words(line, all.map(|option| format!("{before} {option}")).collect())
}

/// Those that begin as what is written so far.
fn words(begun: &str, all: Vec<String>) -> Vec<CompletionCandidate> {
    let fitting = all.into_iter().filter(|word| word.starts_with(begun));
    fitting.map(CompletionCandidate::new).collect()
}
