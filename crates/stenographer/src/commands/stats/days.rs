//! Active days and hours.

use std::collections::BTreeMap;

use jiff::civil::Date;

use crate::process_environment::ProcessEnvironment;

/// Entries by day and by hour of the day.
pub(super) struct ActiveDays {
    days: BTreeMap<Date, u64>,
    hour_counts: [u64; 24],
    today: Date,
}

impl ActiveDays {
    /// Adds up counts per quarter of an hour.
    pub(super) fn new(env: &ProcessEnvironment, quarters: &[(i64, u64)]) -> Self {
        let today = env.zone.to_datetime(env.clock.now().instant()).date();
        let mut all = Self { days: BTreeMap::new(), hour_counts: [0; 24], today };
        for (at, count) in quarters {
            let Ok(instant) = jiff::Timestamp::from_millisecond(*at) else { continue };
            let at = env.zone.to_datetime(instant);
            *all.days.entry(at.date()).or_default() += count;
            all.hour_counts[usize::from(at.hour().unsigned_abs()).min(23)] += count;
        }
        all
    }

    pub(super) fn first_day(&self) -> Option<Date> {
        self.days.keys().next().copied()
    }

    pub(super) fn last_day(&self) -> Option<Date> {
        self.days.keys().next_back().copied()
    }

    pub(super) fn day_count(&self) -> u64 {
        self.days.len() as u64
    }

    pub(super) fn hours(&self) -> [u64; 24] {
        self.hour_counts
    }

    /// Returns the day with the most entries; on a tie, the first.
    pub(super) fn busiest_day(&self) -> Option<(Date, u64)> {
        let most = self.days.values().max()?;
        self.days.iter().find(|(_, count)| *count == most).map(|(day, count)| (*day, *count))
    }

    /// Returns the number of consecutive active days up to today, or up to yesterday if today has none yet.
    pub(super) fn current_streak(&self) -> u64 {
        let yesterday = self.today.yesterday().unwrap_or(self.today);
        let end = [self.today, yesterday].into_iter().find(|day| self.days.contains_key(day));
        let mut length = 0;
        let mut day = end;
        while let Some(at) = day.filter(|day| self.days.contains_key(day)) {
            length += 1;
            day = at.yesterday().ok();
        }
        length
    }

    /// Returns the longest run of consecutive active days.
    pub(super) fn longest_streak(&self) -> u64 {
        let (mut longest, mut length) = (0, 0);
        let mut before = None;
        for day in self.days.keys() {
            let follows = before.is_some() && before == day.yesterday().ok();
            length = if follows { length + 1 } else { 1 };
            longest = longest.max(length);
            before = Some(*day);
        }
        longest
    }
}
