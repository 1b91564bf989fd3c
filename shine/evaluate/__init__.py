"""Populations and data in, scores out: tiers, machines, losses, domains, inference."""
