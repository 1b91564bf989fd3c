"""Native code for tensor programs: callables on arrays, and files for any target."""
