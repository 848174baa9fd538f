"""Timers under misfortunes: nodes killed every 2 s, their database restarted; see ``__main__``."""
