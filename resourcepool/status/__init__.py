"""Reads the status of everything, for the admin, the dashboard, the commands and the REST API; changes no row."""
