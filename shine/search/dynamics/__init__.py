"""Systems of equations of motion, from trajectories."""
