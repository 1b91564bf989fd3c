"""The forms of a formula: trees, tapes, the grammar, the primitives, and their text."""
