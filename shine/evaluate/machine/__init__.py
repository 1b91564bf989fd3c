"""The tile machine: an interpreter of tapes whose instructions work on tiles of rows."""
