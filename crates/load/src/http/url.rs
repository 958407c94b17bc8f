//! Where requests go.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::LoadError;

/// An address, and the request that is sent there.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) request: Vec<u8>,
}

impl Target {
    /// From `http://HOST[:PORT][/PATH]`.
    pub(super) fn parse(url: &str, keep_alive: bool) -> Result<Self, LoadError> {
        let wrong = |why: &str| LoadError::Address(format!("{}: {why}", url.escape_debug()));
        let rest = url.strip_prefix("http://").ok_or_else(|| wrong("not an address that begins with http://"))?;
        if rest.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong("an address has no blanks"));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if host.is_empty() || host.contains('@') {
            return Err(wrong("an address is http://HOST[:PORT][/PATH]"));
        }
        // The last colon of [::1] is none before a port.
        let has_port = host.rfind(':').is_some_and(|colon| !host[colon..].contains(']'));
        let with_port = if has_port { host.to_string() } else { format!("{host}:80") };
        let found = with_port.to_socket_addrs().map_err(|error| wrong(&error.to_string()))?.next();
        let address = found.ok_or_else(|| wrong("the name has no address"))?;
        let path = if path.starts_with('/') { path.to_string() } else { format!("/{path}") };
        let connection = if keep_alive { "" } else { "Connection: close\r\n" };
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: sysdock\r\nAccept: */*\r\n{connection}\r\n");
        Ok(Target { address, request: request.into_bytes() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_requests() {
        let request = |url: &str, keep_alive| {
            let target = Target::parse(url, keep_alive).expect(url);
            (target.address.to_string(), String::from_utf8(target.request).expect("text"))
        };
        let (address, text) = request("http://127.0.0.1:8080/a/b?c=d#e", true);
        assert_eq!(address, "127.0.0.1:8080");
        assert!(text.starts_with("GET /a/b?c=d HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n") && text.ends_with("\r\n\r\n"), "{text}");
        assert!(!text.contains("Connection"));
        let (address, text) = request("http://[::1]?x", false);
        assert_eq!(address, "[::1]:80");
        assert!(text.starts_with("GET /?x HTTP/1.1\r\nHost: [::1]\r\n") && text.contains("\r\nConnection: close\r\n"), "{text}");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for url in [
            "",
            "127.0.0.1",
            "https://127.0.0.1/",
            "http://",
            "http:///x",
            "http://a b/",
            "http://u@h/",
            "http://127.0.0.1:x/",
            "http://127.0.0.1/\r\nX: y",
        ] {
            assert!(matches!(Target::parse(url, true), Err(LoadError::Address(_))), "{url}");
        }
    }
}
