"""Systems of differential equations in other forms: their right-hand sides, and programs that integrate them."""
