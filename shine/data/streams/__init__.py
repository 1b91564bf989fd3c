"""Tables larger than memory, read batch by batch."""
