"""Population x data set -> scores, in tiers that agree: reference, machine and native."""
