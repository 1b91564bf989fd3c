"""What every other room needs: errors, stages of a run, types of arrays, executors."""
