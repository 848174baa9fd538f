"""The read side: each reading written once for all surfaces (admin, dashboard, commands, API). It changes no row."""
