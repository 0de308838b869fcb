//! The frame that all pages about a period share: title, notices, the form of the period, and what is said if nothing is in it.

use jiff::civil::Date;
use maud::{Markup, html};

use crate::date_range::{all_days_link, is_reversed_period, period_form};
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::SessionLibrary;
use crate::page::{self, PageHead};
use crate::viewer::PageViewer;

/// A page about a period.
pub(crate) struct ReportPage<'a> {
    pub(crate) title: &'a str,
    /// The address of the page.
    pub(crate) address: &'a str,
    pub(crate) library: &'a SessionLibrary,
    pub(crate) viewer: &'a PageViewer,
    /// The period and the other filters.
    pub(crate) filters: &'a FilterQuery,
    pub(crate) today: Date,
}

impl ReportPage<'_> {
    /// The page with its content below the form of the period.
    pub(crate) fn with_content(&self, content: &Markup) -> Result<Markup, WebError> {
        let Self { title, address, library, viewer, filters, today } = *self;
        let body = html! {
            h1 { (title) }
            (page::stale_notice(library.index_notice().as_deref()))
            (page::damage_notice(&library.damage_warnings()?))
            (period_form(address, filters, today, &*library.session_listing()?))
            (content)
        };
        Ok(PageHead::new(title, address).viewed_by(viewer).with_body(&body))
    }
}

/// Says that a period has nothing of a kind, and what to do. Of a reversed one, the form says it.
pub(crate) fn empty_period(address: &str, filters: &FilterQuery, text: &str) -> Markup {
    html! {
        @if !is_reversed_period(filters) { .empty {
            p { b { (text) } }
            p { (all_days_link(address, filters)) ", choose fewer filters, or run " code { "steno sync" } " to import sessions." }
        } }
    }
}
