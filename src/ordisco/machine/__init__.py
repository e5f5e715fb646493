"""The machine: cores, memory, devices and processes."""
