"""The ASIC path: gates of a standard cell library, their area, timing and power."""
