use std::fmt;

use crate::stats::{Spread, spread};

/// A table in Markdown.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<&'static str>>) -> Self {
        Self {
            columns: columns.into(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} |", self.columns.join(" | "))?;
        writeln!(f, "{}|", "|---".repeat(self.columns.len()))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        Ok(())
    }
}

/// Where there is no number.
pub(crate) const NOTHING: &str = "–";

/// The middle one of some numbers.
pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> String {
    spread(numbers).map_or(NOTHING.to_owned(), |spread| number(spread.median))
}

/// A number with three digits that count, and thousands apart.
pub(crate) fn number(value: f64) -> String {
    let decimals = match value.abs() {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + rest
}

/// A ratio, and between what it was.
pub(crate) fn ratio(spread: Option<Spread>) -> String {
    match spread {
        Some(Spread {
            least,
            median,
            most,
        }) => format!("{median:.2} ({least:.2}–{most:.2})"),
        None => NOTHING.to_owned(),
    }
}
