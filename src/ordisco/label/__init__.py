"""A page in the browser on which images get their labels."""
