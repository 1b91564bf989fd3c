"""The restricted Python language: grammar, primitives, trees, tapes and their reference meaning."""
