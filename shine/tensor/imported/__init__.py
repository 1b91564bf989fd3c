"""What the readers of foreign graphs share: a function in the making, and layers as other systems define them."""
