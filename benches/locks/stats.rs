//! What is made of the numbers of several rounds.

/// The middle one and both ends of some numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

/// `None` without a number.
pub(crate) fn spread(numbers: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut numbers: Vec<_> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    Some(Spread {
        least: *numbers.first()?,
        median: percentile(&numbers, 0.5)?,
        most: *numbers.last()?,
    })
}

/// By how much the one numbers exceed the others, round by round.
pub(crate) fn ratios(
    own: impl IntoIterator<Item = f64>,
    others: impl IntoIterator<Item = f64>,
) -> Option<Spread> {
    spread(own.into_iter().zip(others).map(|(own, other)| own / other))
}

/// The number that such a part of the sorted numbers does not exceed.
pub(crate) fn percentile(sorted: &[f64], part: f64) -> Option<f64> {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}
