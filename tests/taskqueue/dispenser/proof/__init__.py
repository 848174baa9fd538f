"""A dispenser under misfortunes: workers and rebuilds killed and stopped, its database restarted; see ``__main__``."""
