//! Tokens: texts that a collector and its agents know, and nobody else. An agent shows its token to
//! the collector; the collector signs its answers with it, so that no other server can.

use std::{collections::BTreeMap, fs::File, io::Read, os::unix::fs::MetadataExt, path::Path};

use ring::hmac;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};

use crate::error::AgentError;

/// Longest file of tokens that is read [B].
const MOST_BYTES: u64 = 4 << 20;
/// What is signed with a token to get its name.
const NAME: &[u8] = b"sysdock token name";

/// Tokens of a file: one per line, optionally with the only cluster that it is valid for.
#[derive(Clone, Debug)]
pub struct Tokens {
    first: String,
    /// By digest: a search in it takes a time that does not show how much of a guess was right.
    known: BTreeMap<[u8; 32], Token>,
    /// Digests by name.
    names: BTreeMap<String, [u8; 32]>,
}

/// One token.
#[derive(Clone, Debug)]
pub(crate) struct Token {
    key: hmac::Key,
    /// Clusters that it is valid for; `None`: all.
    clusters: Option<Vec<String>>,
}

impl Token {
    pub(crate) fn new(text: &str) -> Token {
        Token { key: hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes()), clusters: Some(Vec::new()) }
    }

    /// By which a collector finds the token of an agent that does not show it.
    pub(crate) fn name(&self) -> String {
        hex(hmac::sign(&self.key, NAME).as_ref()).chars().take(16).collect()
    }

    pub(crate) fn key(&self) -> &hmac::Key {
        &self.key
    }

    /// Whether it is valid for a cluster.
    pub(crate) fn allows(&self, cluster: &str) -> bool {
        self.clusters.as_ref().is_none_or(|clusters| clusters.iter().any(|known| known == cluster))
    }

    fn allow(&mut self, cluster: Option<&str>) {
        match (cluster, &mut self.clusters) {
            (Some(cluster), Some(clusters)) => clusters.push(cluster.into()),
            _ => self.clusters = None,
        }
    }
}

impl Tokens {
    /// Read a file of tokens. Lines that begin with `#` are comments.
    ///
    /// # Errors
    /// [`AgentError`]: it cannot be read, others may read or change it, or it has no token.
    pub fn read(path: &Path) -> Result<Tokens, AgentError> {
        let failed = |error| AgentError::Io(path.into(), error);
        let file = File::open(path).map_err(failed)?;
        if !is_private(&file).map_err(failed)? {
            return Err(AgentError::OthersRead(path.into()));
        }
        let mut text = String::new();
        file.take(MOST_BYTES).read_to_string(&mut text).map_err(failed)?;
        Tokens::parse(&text).ok_or_else(|| AgentError::NoToken(path.into()))
    }

    fn parse(text: &str) -> Option<Tokens> {
        let mut tokens: Option<Tokens> = None;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let mut words = line.split_ascii_whitespace();
            let Some(token) = words.next() else { continue };
            let empty = || Tokens { first: token.into(), known: BTreeMap::new(), names: BTreeMap::new() };
            tokens.get_or_insert_with(empty).add(token, words.next());
        }
        tokens
    }

    fn add(&mut self, text: &str, cluster: Option<&str>) {
        let digest: [u8; 32] = Sha256::digest(text).into();
        let token = self.known.entry(digest).or_insert_with(|| Token::new(text));
        token.allow(cluster);
        self.names.insert(token.name(), digest);
    }

    /// The token of this text; `None`: it is unknown.
    pub(crate) fn find(&self, text: &str) -> Option<&Token> {
        let digest: [u8; 32] = Sha256::digest(text).into();
        self.known.get(&digest)
    }

    /// The token of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Token> {
        self.known.get(self.names.get(name)?)
    }

    /// The text of the first token.
    pub(crate) fn first(&self) -> &str {
        &self.first
    }
}

/// Whether only this user and root can read the file, and change it. Files that systemd provides
/// (`LoadCredential`) belong to root, and their bits for the group are those of a list that has only
/// this user in it.
fn is_private(file: &File) -> std::io::Result<bool> {
    let found = file.metadata()?;
    let is_own = [0, geteuid().as_raw()].contains(&found.uid());
    let is_of_systemd = found.uid() == 0 && found.gid() == 0 && found.mode() & 0o077 == 0o040;
    Ok(found.is_file() && is_own && (found.mode() & 0o077 == 0 || is_of_systemd))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, chown},
    };

    use super::*;

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        (folder, path)
    }

    #[test]
    fn tokens_are_for_their_cluster() {
        let (_folder, path) = file("# those of the site\nsecret-a a\n\nsecret-all\nsecret-a c\nsecret-ad d\nsecret-ad\n");
        let tokens = Tokens::read(&path).expect("it is fine");
        let allows = |token: &str, cluster: &str| tokens.find(token).map(|token| token.allows(cluster));
        assert_eq!(["a", "b", "c"].map(|cluster| allows("secret-a", cluster)), [Some(true), Some(false), Some(true)]);
        assert_eq!([allows("secret-all", "b"), allows("secret-ad", "x"), allows("forged", "a")], [Some(true), Some(true), None]);
        assert_eq!(tokens.first(), "secret-a");
    }

    #[test]
    fn a_token_is_found_by_its_name() {
        let (_folder, path) = file("secret-a\nsecret-b\n");
        let tokens = Tokens::read(&path).expect("it is fine");
        let name = Token::new("secret-b").name();
        assert_eq!(name.len(), 16);
        assert_eq!(tokens.named(&name).map(Token::name), Some(name));
        assert!(tokens.named("0123456789abcdef").is_none());
    }

    #[test]
    fn a_file_that_others_may_read_or_change_is_refused() {
        let (_folder, path) = file("secret\n");
        for mode in [0o644, 0o604, 0o620, 0o602, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
            assert!(matches!(Tokens::read(&path), Err(AgentError::OthersRead(_))), "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("set");
        if geteuid().is_root() {
            chown(&path, Some(12_345), None).expect("root may");
            assert!(matches!(Tokens::read(&path), Err(AgentError::OthersRead(_))));
        }
        fs::write(&path, "# nothing\n").expect("written");
        assert!(Tokens::read(&path).is_err());
    }
}
