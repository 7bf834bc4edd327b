//! The arguments of `dualq report`, and of what others draw too.

use std::path::PathBuf;

use clap::Args;

use super::interactive::InteractiveArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  dualq run rrul --json --distributions > rrul.json
  dualq report rrul.json -o rrul.html

  Several results in one comparison:
    dualq report before.json after.json -o both.html

  All that is in a folder:
    dualq run narrow-vps coexistence --save results
    dualq report results -o all.html

Without --distributions a document has no curves of distributions; all else is the same.";

#[derive(Args)]
pub(crate) struct ReportArgs {
    /// JSON documents of `dualq run --distributions --json`, or of `--save`, of `check --json`, or of `replay --distributions --json`; `-` for standard input; folders of `dualq sweep`, or of such documents
    #[arg(value_name = "RESULT", required = true)]
    pub(crate) results: Vec<PathBuf>,

    /// The HTML file to write; `-` for standard output
    #[arg(long, short, value_name = "FILE", required_unless_present_any = ["svg", "png", "parquet"])]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) interactive: InteractiveArgs,

    #[command(flatten)]
    pub(crate) pictures: PictureArgs,

    /// Write tables for data frames into the folder DIR, as Parquet: the figures of each run, and the series; into a FILE, whose name has an ending, the figures
    /// alone.
    /// Needs a dualq that was built with `--features parquet`
    #[arg(long, value_name = "FILE|DIR")]
    pub(crate) parquet: Option<PathBuf>,
}

/// Single pictures, for papers and slides.
#[derive(Args)]
pub(crate) struct PictureArgs {
    /// Write single pictures into the folder DIR, as SVG: the comparison, lines over time, distributions of delays, shares
    #[arg(long, value_name = "DIR")]
    pub(crate) svg: Option<PathBuf>,

    /// Write the same as PNG; needs a dualq that was built with `--features png`
    #[arg(long, value_name = "DIR")]
    pub(crate) png: Option<PathBuf>,
}
