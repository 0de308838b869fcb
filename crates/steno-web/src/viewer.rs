//! The time zone of the person who looks at a page.
//!
//! The browser names its zone in a cookie, so that a page shows the same clock on a laptop, on a phone and through a
//! tunnel. Without the cookie, or with an unknown zone, the zone of the server is used.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use steno_model::moment::LocalNow;
use steno_model::{Clock, Timestamp};

/// The cookie that names the zone; `zone.js` sets it.
const ZONE_COOKIE: &str = "steno-zone";

/// The longest name of a zone, in bytes.
const MAX_ZONE_NAME: usize = 64;

/// The viewer of a page.
#[derive(Clone)]
pub(crate) struct PageViewer {
    /// The time zone of all times on the page.
    pub(crate) zone: TimeZone,
}

impl PageViewer {
    /// The viewer who sent a request; `zone` is the zone of the server.
    pub(crate) fn from_headers(headers: &HeaderMap, zone: &TimeZone) -> Self {
        Self { zone: zone_from_cookie(headers).unwrap_or_else(|| zone.clone()) }
    }

    /// The current time, with the zone for relative times.
    pub(crate) fn local_now<'a>(&'a self, clock: &Clock) -> LocalNow<'a> {
        LocalNow { now: clock.now(), zone: &self.zone }
    }

    /// A time as pages show it: `5 January 2026, 09:15`.
    pub(crate) fn format_time(&self, at: Timestamp) -> String {
        at.in_zone(&self.zone).wall().strftime("%-d %B %Y, %H:%M").to_string()
    }

    /// The current date.
    pub(crate) fn today(&self, clock: &Clock) -> Date {
        clock.now().in_zone(&self.zone).wall().date()
    }
}

fn zone_from_cookie(headers: &HeaderMap) -> Option<TimeZone> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
    let name = pairs.find_map(|pair| {
        pair.split_once('=').filter(|(name, _)| name.trim() == ZONE_COOKIE).map(|(_, zone)| zone)
    })?;
    let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    let name = name.trim();
    let is_name = name.len() <= MAX_ZONE_NAME && name.bytes().all(is_name_byte);
    is_name.then(|| TimeZone::get(name).ok())?
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn zone_of(cookie: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(COOKIE, HeaderValue::from_str(cookie).expect("the cookie is a header"));
        zone_from_cookie(&headers).and_then(|zone| zone.iana_name().map(str::to_owned))
    }

    #[test]
    fn the_zone_comes_from_the_cookie() {
        assert_eq!(zone_of("a=b; steno-zone=Asia/Tokyo; c=d").as_deref(), Some("Asia/Tokyo"));
        assert_eq!(zone_of("steno-zone=UTC").as_deref(), Some("UTC"));
    }

    #[test]
    fn an_unknown_zone_is_ignored() {
        for cookie in
            ["a=b", "steno-zone=", "steno-zone=Mars/Crater", "steno-zone=../../etc/passwd"]
        {
            assert_eq!(zone_of(cookie), None, "{cookie}");
        }
    }
}
