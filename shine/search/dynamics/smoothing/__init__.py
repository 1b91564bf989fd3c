"""States and rates along a run, with their errors: interpolated if the readings are clean, else smoothed."""
