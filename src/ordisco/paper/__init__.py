"""The paper's tables and figures: its numbers, the runs that each is made of, ours beside the paper's."""
