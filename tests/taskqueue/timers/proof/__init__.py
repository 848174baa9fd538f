"""Timers under misfortunes: nodes killed or stopped every 2 s, their database restarted; see ``__main__``."""
