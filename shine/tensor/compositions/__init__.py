"""Layers of networks, composed of primitive operations."""
