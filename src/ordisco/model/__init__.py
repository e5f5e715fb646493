"""A model in use: what it learned, put into files, and the images that it asks about."""
