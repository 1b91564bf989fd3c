"""Conditions as people write them: of data frames, of files that are read, of past runs."""
