"""C, G and D of the paper, their spectral norm, the flat view of their parameters and the moving average."""
