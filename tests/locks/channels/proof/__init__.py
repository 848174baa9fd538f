"""Channels under misfortunes: processes killed and stopped, their database restarted; see ``__main__``."""
