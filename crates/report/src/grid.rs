//! A table of figures that fits the terminal: groups of columns under a common title, and what does not fit side by side below.

/// Columns that belong together, under one title.
#[derive(Clone, Debug)]
pub struct Group {
    /// The title of them all.
    pub title: String,
    /// Their own.
    pub names: Vec<String>,
}

/// Rows of words that tell them apart, and of figures.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The titles of the words.
    pub heads: Vec<String>,
    /// The columns of figures.
    pub groups: Vec<Group>,
    /// The words, then a figure for each column of each group.
    pub rows: Vec<Vec<String>>,
}

/// Between columns.
const GAP: &str = "  ";

fn width(text: &str) -> usize {
    text.chars().count()
}

impl Grid {
    /// The table's lines. Where it has more columns than `most`, groups go below each other, each time with the words.
    ///
    /// # Panics
    /// If a row has fewer cells than there are columns.
    #[must_use]
    pub fn lines(&self, most: Option<usize>) -> Vec<String> {
        let heads = self.heads.len();
        let head_widths: Vec<usize> =
            (0..heads).map(|at| self.widest(at, &self.heads[at])).collect();
        let heads_width = head_widths.iter().sum::<usize>() + GAP.len() * heads.saturating_sub(1);
        let mut lines = Vec::new();
        let mut rest = 0;
        while rest < self.groups.len() {
            let mut widths = Vec::new();
            let mut total = heads_width;
            let first = rest;
            while let Some(group) = self.groups.get(rest) {
                let columns = self.group_widths(rest, group);
                let wider = total + columns.iter().map(|width| width + GAP.len()).sum::<usize>();
                if rest > first && most.is_some_and(|most| wider > most) {
                    break;
                }
                total = wider;
                widths.push(columns);
                rest += 1;
            }
            if first > 0 {
                lines.push(String::new());
            }
            self.block(first, &widths, &head_widths, &mut lines);
        }
        lines
    }

    /// The groups from `first` on, of as many as there are widths.
    fn block(
        &self,
        first: usize,
        widths: &[Vec<usize>],
        head_widths: &[usize],
        lines: &mut Vec<String>,
    ) {
        let groups = &self.groups[first..first + widths.len()];
        let left = |words: &[String]| -> String {
            let padded = head_widths.iter().zip(words);
            padded.map(|(width, word)| format!("{word:width$}")).collect::<Vec<_>>().join(GAP)
        };
        let mut titles = left(&vec![String::new(); head_widths.len()]);
        let mut names = left(&self.heads);
        for (group, widths) in groups.iter().zip(widths) {
            let all = widths.iter().sum::<usize>() + GAP.len() * (widths.len() - 1);
            // Above one column as its figures stand, to the right; above several where they begin.
            titles += GAP;
            titles += &match widths.len() {
                1 => format!("{:>all$}", group.title),
                _ => format!("{:all$}", group.title),
            };
            for (name, width) in group.names.iter().zip(widths) {
                names += &format!("{GAP}{name:>width$}");
            }
        }
        lines.push(titles.trim_end().to_owned());
        lines.push(names.trim_end().to_owned());
        let begins = self.heads.len() + self.column_of(first);
        for row in &self.rows {
            let mut line = left(row);
            for (cell, width) in row[begins..].iter().zip(widths.iter().flatten()) {
                line += &format!("{GAP}{cell:>width$}");
            }
            lines.push(line.trim_end().to_owned());
        }
    }

    /// The number of the group's first column.
    fn column_of(&self, group: usize) -> usize {
        self.groups[..group].iter().map(|group| group.names.len()).sum()
    }

    fn widest(&self, at: usize, name: &str) -> usize {
        let cells = self.rows.iter().map(|row| width(&row[at]));
        cells.max().unwrap_or(0).max(width(name))
    }

    fn group_widths(&self, number: usize, group: &Group) -> Vec<usize> {
        let begins = self.heads.len() + self.column_of(number);
        let columns = group.names.iter().zip(begins..);
        let mut widths: Vec<usize> = columns.map(|(name, at)| self.widest(at, name)).collect();
        let all = widths.iter().sum::<usize>() + GAP.len() * (widths.len() - 1);
        // A long title makes room for itself.
        widths[0] += width(&group.title).saturating_sub(all);
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let group = |title: &str, names: &[&str]| Group {
            title: title.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        Grid {
            heads: vec!["qdisc".to_owned()],
            groups: vec![group("rtt (ms)", &["mean", "p99"]), group("queue", &["drops"])],
            rows: vec![row(&["fq", "1.5", "120.25", "7"]), row(&["fq_codel", "1", "", "12,345"])],
        }
    }

    #[test]
    fn groups_stand_above_their_columns() {
        let expected = [
            "          rtt (ms)       queue",
            "qdisc     mean     p99   drops",
            "fq         1.5  120.25       7",
            "fq_codel     1          12,345",
        ];
        assert_eq!(grid().lines(None), expected);
        assert_eq!(grid().lines(Some(30)), expected);
    }

    #[test]
    fn what_does_not_fit_goes_below() {
        let expected = [
            "          rtt (ms)",
            "qdisc     mean     p99",
            "fq         1.5  120.25",
            "fq_codel     1",
            "",
            "           queue",
            "qdisc      drops",
            "fq             7",
            "fq_codel  12,345",
        ];
        assert_eq!(grid().lines(Some(29)), expected);
        assert_eq!(grid().lines(Some(5)), expected);
    }
}
