//! Synthesis: environments that train a capability, and what every environment must prove before
//! anything is trained in it.

pub mod admission;
