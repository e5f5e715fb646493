"""Measured speed: a step against its convolutions, against plain code, and over a growing stream."""
