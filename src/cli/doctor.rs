//! The arguments of `dualq doctor`.

use std::path::PathBuf;

use clap::Args;

use super::recipe::RecipeArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  What is wrong here?
    dualq doctor

  The same, where the provider's shaper lets 50 Mbit/s through:
    dualq doctor --rate 50mbit

  Another machine, from here:
    ssh host dualq doctor --json > host.json
    dualq doctor --facts host.json --rate 50mbit

  What would the settings of this article do here?
    dualq doctor --recipe article.md

It reads and changes nothing, and needs no root; it says what it could not read. The exit status is 0 whatever it finds, 1 if it cannot read the facts, 2 if it is used wrongly.";

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// The rate of the bottleneck in tc's words, wherever that is: 50mbit
    #[arg(long, value_name = "RATE", allow_hyphen_values = true)]
    pub(crate) rate: Option<String>,

    /// Facts that were saved, instead of this machine's; `-` for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) facts: Option<PathBuf>,

    /// Print the facts and findings as one JSON document
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) recipe: RecipeArgs,
}
