//! The options of `dualq doctor --recipe`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct RecipeArgs {
    /// Say of each setting in FILE what it would do here: a sysctl.conf, a script, an article; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) recipe: Option<PathBuf>,

    /// With --recipe and --rate: the path's round-trip time, to judge buffers by [default: what connections here have seen]
    #[arg(long, value_name = "TIME", requires = "rate")]
    pub(crate) rtt: Option<String>,

    /// With --recipe: list the lines that look like commands and are not understood
    #[arg(long, requires = "recipe")]
    pub(crate) verbose: bool,
}
