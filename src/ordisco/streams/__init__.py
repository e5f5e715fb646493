"""Streams: the images in arrival order, a few of them labelled."""
