//! The backend.
