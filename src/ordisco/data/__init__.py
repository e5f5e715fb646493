"""Data sets: the catalogue, a reader for each, a user's own images, the cache, augmentation."""
