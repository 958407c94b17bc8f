//! What a collector answers, and how an agent knows that its own collector did.
//!
//! An agent removes a batch only if an answer names it. So each request has a number that is used
//! once, and the answer is signed (HMAC-SHA256) with the token that both know: over its status and
//! content, that number, and the path of the request. A portal, a proxy or a login page cannot sign,
//! an answer that was recorded is for another number, and one that was cut off is not what was
//! signed. The answer also has the digest of the content that it is about. The token itself is sent
//! only to a server that has signed `/v1/ready`.

use std::collections::BTreeSet;

use http_body_util::Full;
use hyper::{
    Response, StatusCode,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderValue},
};
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sysdock_table::{Fact, codes, facts};

use crate::tokens::{Token, hex};

/// Version of the answers. An agent takes no other.
pub(crate) const VERSION: u32 = 1;
/// Their content type.
pub(crate) const KIND: &str = "application/vnd.sysdock.answer+json";
/// Longest answer that is read [B].
pub(crate) const LONGEST: u64 = 1 << 20;
/// Header with the number of a request.
pub(crate) const NONCE: &str = "x-sysdock-nonce";
/// Header with the name of the token.
pub(crate) const TOKEN: &str = "x-sysdock-token";
/// Header with the signature of an answer.
pub(crate) const SIGNATURE: &str = "x-sysdock-signature";
/// Where a collector says that it is ready, and where it takes batches.
pub(crate) const READY: &str = "/v1/ready";
pub(crate) const BATCHES: &str = "/v1/batches";

/// By what a batch is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Id {
    pub(crate) cluster: String,
    pub(crate) agent: String,
    pub(crate) sequence: i64,
}

/// A line of a request that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefusedLine {
    /// Counted from 0.
    pub(crate) line: usize,
    /// A [`crate::Refusal`] as JSON: a later version may have other reasons.
    pub(crate) why: String,
}

/// What became of the batches of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) version: u32,
    /// SHA-256 of the content of the request.
    pub(crate) content: String,
    /// Number of batches in the request: those that are named, and others, which must be sent again.
    pub(crate) batches: usize,
    /// Batches that are durable.
    pub(crate) landed: Vec<Id>,
    pub(crate) refused: Vec<RefusedLine>,
}

impl Answer {
    /// Whether it can be the answer to a request with this content, which has these batches.
    pub(crate) fn is_about(&self, content: &[u8], sent: &[Id]) -> bool {
        let known: BTreeSet<&Id> = sent.iter().collect();
        let landed: BTreeSet<&Id> = self.landed.iter().collect();
        let lines: BTreeSet<usize> = self.refused.iter().map(|refused| refused.line).collect();
        let is_both = |line: &usize| sent.get(*line).is_none_or(|id| landed.contains(id));
        self.content == digest(content)
            && self.batches == sent.len()
            && landed.is_subset(&known)
            && landed.len() == self.landed.len()
            && lines.len() == self.refused.len()
            && !lines.iter().any(is_both)
    }
}

/// A collector is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ready {
    pub(crate) version: u32,
    pub(crate) is_ready: bool,
}

/// Why an answer does not count: nothing is removed, and the batches are sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uncounted {
    /// It leads to another address, which is not followed.
    Redirect(u16),
    /// Its content is of another type, or of none.
    ContentType(String),
    /// It has no signature: of a server that is not a collector, or of a collector before 0.4.
    Unsigned,
    /// It was not signed with the token of this agent, for this request.
    Signature,
    /// It is of another version, or not of the form of an answer.
    Form,
    /// It names batches that were not sent, or another number of them.
    OtherBatches,
    /// It ends early, or cannot be read: why, as the HTTP library states it.
    Broken(String),
}

codes!(Uncounted {
    Redirect: "redirect",
    ContentType: "content_type",
    Unsigned: "unsigned",
    Signature: "signature",
    Form: "form",
    OtherBatches: "other_batches",
    Broken: "broken",
});

impl Uncounted {
    /// As a fact.
    #[must_use]
    pub fn fact(&self) -> Fact {
        match self {
            Uncounted::Redirect(status) => facts::agent::redirect(i64::from(*status)),
            Uncounted::ContentType(kind) => facts::agent::content_type(kind.as_str()),
            Uncounted::Unsigned => facts::agent::unsigned(),
            Uncounted::Signature => facts::agent::signature(),
            Uncounted::Form => facts::agent::form(),
            Uncounted::OtherBatches => facts::agent::other_batches(),
            Uncounted::Broken(error) => facts::agent::broken(error.as_str()),
        }
    }
}

/// A request, as far as its answer is bound to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    path: &'static str,
    nonce: String,
}

impl Asked {
    /// A request by this agent; `None`: the system provides no random numbers.
    pub(crate) fn new(path: &'static str) -> Option<Asked> {
        let mut nonce = [0; 16];
        SystemRandom::new().fill(&mut nonce).ok()?;
        Some(Asked::with_nonce(path, &hex(&nonce)))
    }

    /// A request with this number.
    pub(crate) fn with_nonce(path: &'static str, nonce: &str) -> Asked {
        Asked { path, nonce: nonce.into() }
    }

    pub(crate) fn nonce(&self) -> &str {
        &self.nonce
    }

    fn signed(&self, status: u16, answer: &[u8]) -> Vec<u8> {
        let Asked { path, nonce } = self;
        let mut text = format!("sysdock answer {VERSION}\n{path}\n{nonce}\n{status}\n").into_bytes();
        text.extend_from_slice(answer);
        text
    }

    /// The signature of an answer to this request.
    pub(crate) fn sign(&self, token: &Token, status: u16, answer: &[u8]) -> String {
        hex(hmac::sign(token.key(), &self.signed(status, answer)).as_ref())
    }

    /// Whether a signature is that of the collector.
    pub(crate) fn is_signed(&self, token: &Token, status: u16, answer: &[u8], signature: &str) -> bool {
        let bytes = (0..signature.len()).step_by(2).map(|at| u8::from_str_radix(signature.get(at..at + 2)?, 16).ok());
        let bytes: Option<Vec<u8>> = bytes.collect();
        bytes.is_some_and(|bytes| hmac::verify(token.key(), &self.signed(status, answer), &bytes).is_ok())
    }
}

/// What an answer calls the content of a request.
pub(crate) fn digest(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// A signed answer.
pub(crate) fn signed(asked: &Asked, token: &Token, status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let body = body.into();
    let signature = asked.sign(token, status.as_u16(), &body);
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
    if let Ok(value) = HeaderValue::from_str(&signature) {
        response.headers_mut().insert(SIGNATURE, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(numbers: &[i64]) -> Vec<Id> {
        let id = |sequence: &i64| Id { cluster: "c".into(), agent: "0123456789abcdef".into(), sequence: *sequence };
        numbers.iter().map(id).collect()
    }

    fn refused(line: usize) -> RefusedLine {
        RefusedLine { line, why: "{}".into() }
    }

    #[test]
    fn an_answer_is_for_one_request_and_one_token() {
        let token = Token::new("secret");
        let asked = Asked::with_nonce(BATCHES, "n1");
        let signature = asked.sign(&token, 200, b"answer");
        assert!(asked.is_signed(&token, 200, b"answer", &signature));
        let others = [Asked::with_nonce(BATCHES, "n2"), Asked::with_nonce(READY, "n1")];
        assert!(others.iter().all(|other| !other.is_signed(&token, 200, b"answer", &signature)));
        assert!(!asked.is_signed(&Token::new("forged"), 200, b"answer", &signature));
        assert!(!asked.is_signed(&token, 201, b"answer", &signature));
        assert!(!asked.is_signed(&token, 200, b"answers", &signature));
        for wrong in ["", "x", &signature[1..], "\u{e9}\u{e9}", &signature.replace(|_| true, "0")] {
            assert!(!asked.is_signed(&token, 200, b"answer", wrong), "{wrong}");
        }
    }

    #[test]
    fn no_two_requests_have_a_number() {
        let numbers: BTreeSet<String> = (0..100).filter_map(|_| Some(Asked::new(READY)?.nonce)).collect();
        assert_eq!(numbers.len(), 100);
    }

    #[test]
    fn an_answer_names_what_was_sent_and_nothing_else() {
        let sent = ids(&[1, 2, 3]);
        let answer = |landed: &[i64], refused: &[RefusedLine], batches| Answer {
            version: VERSION,
            content: digest(b"body"),
            batches,
            landed: ids(landed),
            refused: refused.to_vec(),
        };
        assert!(answer(&[1, 3], &[refused(1)], 3).is_about(b"body", &sent));
        assert!(answer(&[], &[], 3).is_about(b"body", &sent), "all must be sent again");
        assert!(!answer(&[1, 3], &[refused(1)], 3).is_about(b"other", &sent));
        for wrong in [
            answer(&[1, 2, 3], &[], 2),
            answer(&[4], &[], 3),
            answer(&[1, 1], &[], 3),
            answer(&[1], &[refused(0)], 3),
            answer(&[1], &[refused(3)], 3),
            answer(&[1], &[refused(1), refused(1)], 3),
        ] {
            assert!(!wrong.is_about(b"body", &sent), "{wrong:?}");
        }
    }
}
