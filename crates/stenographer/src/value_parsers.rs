//! Parsers for values on the command line, with errors that say what fits.

use std::net::{IpAddr, SocketAddr};

/// Parses a count.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "not a whole number, such as 20".to_owned())
}

/// Parses a number of milliseconds.
pub(crate) fn parse_milliseconds(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "not a number of milliseconds, such as 500".to_owned())
}

/// Parses an address with a port.
pub(crate) fn parse_socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "not an IP address and a port, such as 127.0.0.1:4180".to_owned())
}

/// Parses an address.
pub(crate) fn parse_ip_address(text: &str) -> Result<IpAddr, String> {
    text.parse().map_err(|_| "not an IP address, such as 127.0.0.1 or 0.0.0.0".to_owned())
}
