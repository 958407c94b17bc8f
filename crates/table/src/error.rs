use std::{ffi::OsString, io, path::PathBuf};

/// Gives an error a code for each variant, and a `Display` of the code and the values, for
/// developers. The text for people is formed in `native`, which matches every variant.
#[macro_export]
macro_rules! codes {
    ($error:ident { $($variant:ident: $code:literal),+ $(,)? }) => {
        impl $error {
            #[must_use]
            pub fn code(&self) -> &'static str {
                match self {
                    $($error::$variant { .. } => $code),+
                }
            }
        }

        impl ::std::fmt::Display for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let shown = format!("{self:?}");
                write!(f, "{}{}", self.code(), shown.trim_start_matches(char::is_alphanumeric))
            }
        }

        impl ::std::error::Error for $error {}
    };
}

/// Errors while a recording is written.
#[derive(Debug)]
pub enum TableError {
    /// The output folder exists and is not empty.
    Exists(PathBuf),
    /// The folder contains no complete recording of this version, so nothing can be added to it.
    NotComplete(PathBuf),
    /// The folder belongs to this other user, who could redirect what is written to it.
    Stranger(PathBuf, u32),
    /// The path leads over a link of this name that belongs to this other user, who could make it
    /// lead anywhere.
    StrangersLink(PathBuf, OsString, u32),
    /// Users other than its owner may write to the folder.
    OthersWrite(PathBuf),
    /// A file or folder could not be created or written.
    Io(PathBuf, io::Error),
    /// The Parquet writer failed; mostly a write error in disguise (see [`TableError::io_kind`]).
    Parquet(PathBuf, parquet::errors::ParquetError),
}

codes!(TableError {
    Exists: "exists",
    NotComplete: "not-complete",
    Stranger: "stranger",
    StrangersLink: "strangers-link",
    OthersWrite: "others-write",
    Io: "io",
    Parquet: "parquet",
});

impl TableError {
    /// The kind of the underlying write error, if there is one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            TableError::Io(_, error) => Some(error.kind()),
            TableError::Parquet(_, parquet::errors::ParquetError::External(inner)) => {
                inner.downcast_ref::<io::Error>().map(io::Error::kind)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_as_its_code_and_values() {
        assert_eq!(TableError::Stranger("/rec".into(), 1000).to_string(), "stranger(\"/rec\", 1000)");
    }
}
