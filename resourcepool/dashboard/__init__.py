"""The dashboard: a live page of the admin site with the state of all pools and other systems."""
