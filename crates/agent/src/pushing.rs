//! Sends batches to a collector. None is removed unless a signed answer names it (`answers`).

use ureq::{
    Body,
    http::{Response, StatusCode, header::CONTENT_TYPE},
};

use crate::{
    answers::{Answer, Asked, BATCHES, Id, KIND, LONGEST, NONCE, READY, Ready, SIGNATURE, TOKEN, Uncounted, VERSION},
    batch::{DAY_NS, Refusal},
    error::{AgentError, Unsent},
    http::RequestRefusal,
    intake::MOST_UNPACKED,
    line::Line,
    outcome::Outcome,
    spool::{Spool, Waiting},
    tokens::Token,
};

/// A collector.
pub(crate) struct Push {
    client: ureq::Agent,
    /// Address, without a path.
    url: String,
    /// Text of the token.
    text: String,
    token: Token,
}

/// Batches that can be sent: each with its line.
pub(crate) type Lines = Vec<(Waiting, Line)>;

/// Read batches; those that cannot be read are set aside, with the reason.
pub(crate) fn readable(spool: &Spool, chosen: &[Waiting]) -> Result<(Lines, Option<Refusal>), AgentError> {
    let (mut lines, mut refused) = (Vec::new(), None);
    for waiting in chosen {
        let line = match spool.line(waiting) {
            // The node's own clock is trusted.
            Ok(text) => Line::parse(text.trim_ascii_end().to_vec().into(), i64::MAX - DAY_NS),
            Err(error) => Err(Refusal::Unreadable { error: error.to_string() }),
        };
        match line {
            Ok(line) => lines.push((waiting.clone(), line)),
            Err(why) => {
                spool.set_aside(waiting, &why)?;
                refused = Some(why);
            }
        }
    }
    Ok((lines, refused))
}

impl Push {
    pub(crate) fn new(client: ureq::Agent, url: String, token: &str) -> Push {
        Push { client, url, text: token.into(), token: Token::new(token) }
    }

    /// Send batches in one request.
    pub(crate) fn send(&self, spool: &Spool, chosen: &[Waiting]) -> Result<Outcome, AgentError> {
        let (lines, refused) = readable(spool, chosen)?;
        let (lines, too_long): (Lines, Lines) = lines.into_iter().partition(|(_, line)| line.text().len() < MOST_UNPACKED);
        let mut refused = refused;
        for (waiting, line) in &too_long {
            let why = Refusal::TooLong { bytes: line.text().len() as u64 };
            spool.set_aside(waiting, &why)?;
            refused = Some(why);
        }
        let sent = if lines.is_empty() { Ok(Outcome::Landed) } else { self.send_lines(spool, lines) };
        match (sent?, refused) {
            (Outcome::Landed, Some(why)) => Ok(Outcome::Refused(why)),
            (outcome, _) => Ok(outcome),
        }
    }

    fn send_lines(&self, spool: &Spool, lines: Lines) -> Result<Outcome, AgentError> {
        // If no collector is there, nothing is sent, and the batches need not be marked as sent.
        self.check_ready().map_err(AgentError::Collector)?;
        let was_sent = lines.iter().any(|(waiting, _)| waiting.was_sent);
        let (mut body, mut sent, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        for (waiting, line) in lines {
            body.extend_from_slice(line.text());
            body.push(b'\n');
            sent.push(spool.about_to_send(&waiting)?);
            ids.push(line.id);
        }
        let packed = zstd::bulk::compress(&body, 1).map_err(|error| AgentError::Collector(Unsent::Pack(error)))?;
        drop(body);
        let answer = self.post(&packed, was_sent, &ids).map_err(AgentError::Collector)?;
        settle(spool, &sent, &ids, &answer)
    }

    /// Whether a collector that knows the token is ready.
    fn check_ready(&self) -> Result<(), Unsent> {
        let asked = Asked::new(READY).ok_or(Unsent::NoRandom)?;
        let request = self.client.get(format!("{}{READY}", self.url));
        let request = request.header(NONCE, asked.nonce()).header(TOKEN, self.token.name());
        let (status, body) = self.signed(&asked, request.call().map_err(Unsent::Unreachable)?)?;
        let ready: Ready = serde_json::from_slice(&body).map_err(|_| Uncounted::Form)?;
        if ready.version != VERSION {
            return Err(Uncounted::Form.into());
        }
        if ready.is_ready { Ok(()) } else { Err(Unsent::NotReady(status)) }
    }

    fn post(&self, packed: &[u8], was_sent: bool, ids: &[Id]) -> Result<Answer, Unsent> {
        let asked = Asked::new(BATCHES).ok_or(Unsent::NoRandom)?;
        let request = self
            .client
            .post(format!("{}{BATCHES}", self.url))
            .header("authorization", format!("Bearer {}", self.text))
            .header("content-encoding", "zstd")
            .header(NONCE, asked.nonce())
            .header("x-sysdock-sent-before", if was_sent { "1" } else { "0" });
        let (status, body) = self.signed(&asked, request.send(packed).map_err(Unsent::Unreachable)?)?;
        if status != StatusCode::OK {
            return Err(Unsent::Answers(status, RequestRefusal::from_body(&body)));
        }
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| Uncounted::Form)?;
        if answer.version != VERSION {
            return Err(Uncounted::Form.into());
        }
        if answer.is_about(packed, ids) { Ok(answer) } else { Err(Uncounted::OtherBatches.into()) }
    }

    /// The status and content of an answer, if the collector signed it.
    fn signed(&self, asked: &Asked, mut answer: Response<Body>) -> Result<(StatusCode, Vec<u8>), Unsent> {
        let status = answer.status();
        if status.is_redirection() {
            return Err(Uncounted::Redirect(status.as_u16()).into());
        }
        let kind = header(&answer, CONTENT_TYPE.as_str());
        let signature = header(&answer, SIGNATURE);
        let body = answer.body_mut().with_config().limit(LONGEST).read_to_vec();
        let body = body.map_err(|error| Uncounted::Broken(error.to_string()))?;
        if signature.is_empty() {
            return Err(unsigned(status, kind, &body));
        }
        if kind != KIND {
            return Err(Uncounted::ContentType(kind).into());
        }
        if asked.is_signed(&self.token, status.as_u16(), &body, &signature) {
            Ok((status, body))
        } else {
            Err(Uncounted::Signature.into())
        }
    }
}

fn header(answer: &Response<Body>, name: &str) -> String {
    let value = answer.headers().get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().chars().take(200).collect()
}

/// Why an answer without a signature does not count.
fn unsigned(status: StatusCode, kind: String, body: &[u8]) -> Unsent {
    if status != StatusCode::OK {
        return Unsent::Answers(status, RequestRefusal::from_body(body));
    }
    if kind.is_empty() || kind == KIND { Uncounted::Unsigned.into() } else { Uncounted::ContentType(kind).into() }
}

/// Remove what the answer names. `sent`: the batches in the order of their lines.
fn settle(spool: &Spool, sent: &[Waiting], ids: &[Id], answer: &Answer) -> Result<Outcome, AgentError> {
    let mut outcome = Outcome::Landed;
    for (waiting, id) in sent.iter().zip(ids) {
        if answer.landed.contains(id) {
            spool.landed(waiting)?;
        }
    }
    for refused in &answer.refused {
        let Some(waiting) = sent.get(refused.line) else { continue };
        let why = Refusal::from_json(&refused.why);
        spool.set_aside(waiting, &why)?;
        outcome = Outcome::Refused(why);
    }
    let settled = answer.landed.len() + answer.refused.len();
    // The others must be sent again.
    if settled == 0 {
        Err(AgentError::Collector(Unsent::Answers(StatusCode::OK, RequestRefusal::NotLanded)))
    } else {
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests;
