"""Pages of runs and of the paper's items, as files or served."""
