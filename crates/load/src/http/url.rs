//! Targets of requests, and their content.

use std::net::{SocketAddr, ToSocketAddrs};

use crate::error::{LoadError, WrongAddress, WrongRequest};

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// GET, or POST without content.
    pub method: String,
    /// `http://HOST[:PORT][/PATH]`.
    pub url: String,
}

impl Request {
    /// A GET request.
    #[must_use]
    pub fn get(url: &str) -> Self {
        Request { method: "GET".into(), url: url.into() }
    }

    /// The requests of a text, `METHOD PATH` in each line, to a server.
    ///
    /// # Errors
    ///
    /// A line is invalid, or the server is given with a path.
    pub fn lines(server: &str, text: &str) -> Result<Vec<Self>, LoadError> {
        let server = server.strip_suffix('/').unwrap_or(server);
        if server.strip_prefix("http://").unwrap_or_default().contains(['/', '?', '#']) {
            return Err(LoadError::Address(server.into(), WrongAddress::ServerWithPath));
        }
        let parse = |(number, line): (usize, &str)| match line.split_once(' ') {
            Some((method @ ("GET" | "POST"), path)) if path.starts_with('/') => {
                Ok(Request { method: method.into(), url: format!("{server}{path}") })
            }
            _ => Err(LoadError::Request(WrongRequest::Line(number + 1))),
        };
        text.lines().enumerate().map(parse).collect()
    }
}

/// An address, and the request that is sent there.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    pub(super) request: Vec<u8>,
    /// Whether it may be sent again if it is unknown whether the server has processed it.
    pub(super) is_repeatable: bool,
}

impl Target {
    /// The target and bytes of a request.
    pub(super) fn parse(request: &Request, keep_alive: bool) -> Result<Self, LoadError> {
        let Request { method, url } = request;
        let wrong = |why| LoadError::Address(url.clone(), why);
        let rest = url.strip_prefix("http://").ok_or_else(|| wrong(WrongAddress::Scheme))?;
        if rest.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(wrong(WrongAddress::Blanks));
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if host.is_empty() || host.contains('@') {
            return Err(wrong(WrongAddress::Form));
        }
        // The last colon of [::1] does not precede a port.
        let has_port = host.rfind(':').is_some_and(|colon| !host[colon..].contains(']'));
        let with_port = if has_port { host.to_string() } else { format!("{host}:80") };
        let found = with_port.to_socket_addrs().map_err(|error| wrong(WrongAddress::Lookup(error)))?.next();
        let address = found.ok_or_else(|| wrong(WrongAddress::NoAddress))?;
        let path = if path.starts_with('/') { path.to_string() } else { format!("/{path}") };
        let connection = if keep_alive { "" } else { "Connection: close\r\n" };
        let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: sysdock\r\nAccept: */*\r\n");
        let request = format!("{head}{length}{connection}\r\n");
        Ok(Target { address, request: request.into_bytes(), is_repeatable: method == "GET" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_become_requests() {
        let request = |url: &str, keep_alive| {
            let target = Target::parse(&Request::get(url), keep_alive).expect(url);
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
            assert!(matches!(Target::parse(&Request::get(url), true), Err(LoadError::Address(..))), "{url}");
        }
    }

    #[test]
    fn lines_become_requests_of_a_server() {
        let requests = Request::lines("http://127.0.0.1:8080/", "GET /a?b\nPOST /c\n").expect("lines");
        assert_eq!(requests[0], Request::get("http://127.0.0.1:8080/a?b"));
        let target = Target::parse(&requests[1], true).expect("a request");
        assert!(!target.is_repeatable);
        let text = String::from_utf8(target.request).expect("text");
        assert!(text.starts_with("POST /c HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n"), "{text}");
        assert!(text.ends_with("\r\nContent-Length: 0\r\n\r\n"), "{text}");
        for text in ["GET /a\n\n", "PUT /a", "GET a", "/a"] {
            let found = Request::lines("http://127.0.0.1", text);
            assert!(matches!(found, Err(LoadError::Request(WrongRequest::Line(_)))), "{text}");
        }
        let found = Request::lines("http://127.0.0.1/x", "GET /a");
        assert!(matches!(found, Err(LoadError::Address(_, WrongAddress::ServerWithPath))));
    }
}
