//! Constructors of facts, made by the build from `knowhow/sentences`: a module for each subject, a function for each entry.
#![allow(missing_docs, clippy::must_use_candidate, clippy::type_complexity)]

include!(concat!(env!("OUT_DIR"), "/facts.rs"));
