//! What each job does to the file systems, and what of the machine it uses: counted on every node, brought into one lake.
//!
//! In the order in which numbers go: the kernel adds up by account (`sysdock_bpf::accounting`); `binding` says whose an account is; `sampling` takes
//! differences and knows when a job has ended; `node` has the machine's own counters; `batch` is what travels; `spool` keeps it on disk until it has
//! landed; `sending` brings it to a collector, or into a lake; `collector` gets it; `landing` sees to it that it lands once; `lake` writes it.
//! `agent` is the loop on the node, and `asking` what an epilogue of a job asks it. Next to it, `sums` totals what the batches contain, of all jobs together,
//! `exposition` writes it as OpenMetrics, and `endpoint` serves it; `http` is what endpoint and collector share; `otlp` sends batches to a receiver of
//! OpenTelemetry.

mod agent;
mod asking;
mod batch;
mod binding;
mod collector;
mod endpoint;
mod error;
mod exposition;
mod http;
mod lake;
mod landing;
mod node;
mod otlp;
mod rows;
mod sampling;
mod sending;
mod settings;
mod sketch;
mod spool;
mod sums;

pub use agent::{Agent, Event, Options};
pub use asking::{JobAnswer, query_job};
pub use batch::Batch;
pub use collector::{Collector, CollectorOptions};
pub use endpoint::MetricsOptions;
pub use error::AgentError;
pub use exposition::FEWEST_SERIES;
pub use lake::Lake;
pub use landing::Landing;
pub use sending::{Target, Tokens};
pub use settings::{Hidden, Settings, SettingsError, SettingsFile};
