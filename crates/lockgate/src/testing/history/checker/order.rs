//! Two questions that several rules ask about order.

/// A number that was given out at some time between `from` and `until`.
pub(super) struct Numbered {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) number: u64,
}

/// Finds the numbers that came too late: for each that is lower than one which was certainly given out before it,
/// `(the highest such, it)`.
///
/// Equal times count as concurrent: the clock may not tell them apart.
pub(super) fn out_of_order(items: &[Numbered]) -> Vec<(usize, usize)> {
    let mut by_start: Vec<usize> = (0..items.len()).collect();
    by_start.sort_by_key(|&index| items[index].from);
    let mut by_end = by_start.clone();
    by_end.sort_by_key(|&index| items[index].until);

    let mut finished = by_end.into_iter().peekable();
    let mut highest: Option<usize> = None;
    let mut found = Vec::new();
    for later in by_start {
        while let Some(done) = finished.next_if(|&done| items[done].until < items[later].from) {
            if highest.is_none_or(|high| items[high].number < items[done].number) {
                highest = Some(done);
            }
        }
        if let Some(high) = highest
            && items[high].number > items[later].number
        {
            found.push((high, later));
        }
    }
    found
}

/// Counts how many of the values seen so far are greater than a given one, in O(log n) (a Fenwick tree).
pub(super) struct Tally {
    /// All values that will ever be added, sorted and each once.
    values: Vec<u64>,
    tree: Vec<u64>,
    seen: u64,
}

impl Tally {
    /// A tally that can take these values, and has seen none of them.
    pub(super) fn over(values: impl Iterator<Item = u64>) -> Self {
        let mut values: Vec<u64> = values.collect();
        values.sort_unstable();
        values.dedup();
        let tree = vec![0; values.len() + 1];
        Self { values, tree, seen: 0 }
    }

    /// Sees a value.
    pub(super) fn add(&mut self, value: u64) {
        self.seen += 1;
        let mut index = self.up_to(value);
        while index > 0 && index < self.tree.len() {
            self.tree[index] += 1;
            index += lowest_bit(index);
        }
    }

    /// How many of the seen values are greater than `value`.
    pub(super) fn greater_than(&self, value: u64) -> u64 {
        let mut index = self.up_to(value);
        let mut not_greater = 0;
        while index > 0 {
            not_greater += self.tree[index];
            index -= lowest_bit(index);
        }
        self.seen - not_greater
    }

    fn up_to(&self, value: u64) -> usize {
        self.values.partition_point(|&known| known <= value)
    }
}

fn lowest_bit(index: usize) -> usize {
    index & index.wrapping_neg()
}
