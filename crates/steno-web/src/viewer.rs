//! The time zone of the person who looks at a page.
//!
//! The browser names its zone in a cookie, so that a page shows the same clock on a laptop, on a phone and through a
//! tunnel. Without the cookie, or with an unknown zone, the zone of the server is used.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use steno_model::moment::LocalNow;

use crate::app::WebApp;
use crate::library::SessionLibrary;

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
    /// The current time, with the zone for relative times.
    pub(crate) fn local_now<'a>(&'a self, library: &SessionLibrary) -> LocalNow<'a> {
        LocalNow { now: library.clock.now(), zone: &self.zone }
    }

    /// The current date.
    pub(crate) fn today(&self, library: &SessionLibrary) -> Date {
        library.clock.now().in_zone(&self.zone).wall().date()
    }
}

impl FromRequestParts<WebApp> for PageViewer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &WebApp) -> Result<Self, Infallible> {
        let zone = zone_from_cookie(&parts.headers);
        Ok(Self { zone: zone.unwrap_or_else(|| app.library.zone.clone()) })
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
