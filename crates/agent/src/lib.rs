//! Accounts for what each job does to file systems and which of the machine's resources it uses:
//! counted on every node, collected in one lake.
//!
//! In the order in which numbers travel: the kernel adds up by account (`sysdock_bpf::accounting`);
//! `binding` attributes an account to a job; `sampling` takes differences and determines when a job
//! has ended; `node` reads the machine's own counters; `batch` is the unit that travels; `spool`
//! keeps batches on disk until they have landed; `sending` brings them to a collector, or into a
//! lake; `collector` receives them; `landing` ensures that each lands once; `lake` writes them.
//!
//! `agent` is the loop on the node, and `asking` answers the epilogues of jobs. Next to it, `sums`
//! totals what the batches contain, of all jobs together, `exposition` writes the totals as
//! OpenMetrics, and `endpoint` serves them; `http` is what endpoint and collector share; `otlp`
//! sends batches to a receiver of OpenTelemetry.

// Whatever comes over the network or from a disk is an error, not a panic. Exceptions state their reason.
#![cfg_attr(not(any(test, feature = "fuzzing")), warn(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing))]

mod agent;
mod answers;
mod aside;
mod asking;
mod batch;
mod binding;
mod collector;
mod endpoint;
mod error;
mod exposition;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod http;
mod intake;
mod json;
mod lake;
mod landed;
mod landing;
mod line;
mod names;
mod node;
mod otlp;
mod outcome;
mod pending;
mod pushing;
mod room;
mod rows;
mod sampling;
mod sending;
mod settings;
mod sketch;
mod spool;
mod sums;
mod tokens;

pub use agent::{Agent, Event, Options};
pub use answers::Uncounted;
pub use aside::Aside;
pub use asking::{AgentStatus, DestinationStatus, JobAnswer, query_job, query_status};
pub use batch::{Batch, Named, Refusal};
pub use collector::{Collector, CollectorOptions};
pub use endpoint::MetricsOptions;
pub use error::{AgentError, Unsent};
pub use exposition::FEWEST_SERIES;
pub use http::RequestRefusal;
pub use lake::Lake;
pub use landing::Landing;
pub use outcome::Rejection;
pub use sending::Target;
pub use settings::{Hidden, Settings, SettingsError, SettingsFile};
pub use tokens::Tokens;
