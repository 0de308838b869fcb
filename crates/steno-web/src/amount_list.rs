//! A chart of named amounts: a row for each, with its name, a bar and the amount.

use maud::{Markup, html};
use steno_store::amount::format_dollars;

use crate::chart::{share_bar, share_text};
use crate::render::plain::clean_text;
use crate::units::exact_count;

/// How many rows a chart has. The others are added up in one more.
const MAX_ROWS: usize = 12;

/// A row of the chart.
pub(crate) struct NamedAmount {
    /// The name as it is shown.
    pub(crate) name: String,
    /// The whole name, for the tooltip.
    pub(crate) whole_name: String,
    /// Where the name leads.
    pub(crate) link: Option<String>,
    /// US dollars.
    pub(crate) dollars: f64,
}

/// A chart of amounts, the largest first. Nothing is drawn for fewer than two, which have nothing to be compared with.
pub(crate) fn amount_list(caption: &str, amounts: &[NamedAmount]) -> Markup {
    let mut rows: Vec<&NamedAmount> = amounts.iter().filter(|one| one.dollars > 0.0).collect();
    rows.sort_by(|a, b| b.dollars.total_cmp(&a.dollars));
    let total: f64 = rows.iter().map(|one| one.dollars).sum();
    let largest = rows.first().map_or(0.0, |one| one.dollars);
    // A single row more is shown as it is.
    let shown = if rows.len() > MAX_ROWS + 1 { MAX_ROWS } else { rows.len() };
    let (shown, others) = rows.split_at(shown);
    let rest: f64 = others.iter().map(|one| one.dollars).sum();
    let row = |name: &Markup, title: &str, dollars: f64| {
        html! {
            li title=(clean_text(title)) {
                span { (name) }
                (share_bar(dollars / largest.max(rest).max(1e-9)))
                b { (format_dollars(dollars)) }
                small { (share_text(dollars / total.max(1e-9))) }
            }
        }
    };
    html! {
        @if rows.len() > 1 {
            figure.chart.amounts {
                figcaption { (caption) }
                ol role="list" {
                    @for one in shown { (row(&linked_name(one), &one.whole_name, one.dollars)) }
                    @if !others.is_empty() {
                        @let name = format!("{} others", exact_count(others.len() as u64));
                        (row(&html! { (name) }, &name, rest))
                    }
                }
            }
        }
    }
}

fn linked_name(one: &NamedAmount) -> Markup {
    html! {
        @match &one.link {
            Some(link) => a href=(link) { (clean_text(&one.name)) },
            None => (clean_text(&one.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(name: String, dollars: f64) -> NamedAmount {
        NamedAmount { whole_name: name.clone(), name, link: None, dollars }
    }

    #[test]
    fn each_amount_has_a_name_and_the_others_are_added_up() {
        let all: Vec<_> = (1..=20).map(|at| amount(format!("<{at}>"), f64::from(at))).collect();
        let text = amount_list("US dollars", &all).0;
        assert!(text.contains("<span>&lt;20&gt;</span>") && text.contains(">&lt;9&gt;<"), "{text}");
        // 1 to 8 together.
        assert!(
            text.contains("<span>8 others</span>")
                && text.contains("<b>$36.00</b><small>17%</small>"),
            "{text}"
        );
        assert_eq!(text.matches("<li").count(), 13);
        assert_eq!(amount_list("", &all[..13]).0.matches("<li").count(), 13);
    }

    #[test]
    fn one_amount_is_no_chart() {
        assert_eq!(
            amount_list("", &[amount("a".to_owned(), 1.0), amount("b".to_owned(), 0.0)]).0,
            ""
        );
    }
}
