"""Studies: rows of runs that are made or resumed, one after the other or side by side, and their tables."""
