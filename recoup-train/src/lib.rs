//! Trains LoRA adapters on the training examples that `recoup` builds.
//!
//! This crate holds everything that needs tensors, so that the library and the program compile
//! without them: the decoder, low-rank adapters, the losses of the training views, the trainer,
//! the gate that routes tokens to adapters, and a local model that answers as any other
//! chat model does. None of it exists yet; the crate marks the boundary.
