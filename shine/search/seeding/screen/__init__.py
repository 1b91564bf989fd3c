"""The screen that every seeding search looks at: the target, its views, and a bank on the screened rows."""
