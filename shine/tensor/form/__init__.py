"""The typed form of tensor programs: types, operations, functions, text, verifier, and the reference interpreter."""
