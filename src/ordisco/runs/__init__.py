"""Runs: one learner on one stream in one directory, safe against crashes."""
