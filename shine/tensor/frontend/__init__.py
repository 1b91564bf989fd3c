"""Shared by the readers of foreign graphs: a function in the making, and layers as other systems define them."""
