"""How good the formulas of a search are: problems, engines, runs in processes of their own, scores and tables."""
