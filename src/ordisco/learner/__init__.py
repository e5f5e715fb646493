"""The learner: an explicit state, the training step that changes it, and what is kept of an increment."""
