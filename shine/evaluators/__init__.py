"""Population x data set -> scores, in three tiers that agree: reference, machine (to come) and native."""
