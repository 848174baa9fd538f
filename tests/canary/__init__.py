"""Canaries for every surface: secrets and hostile text are planted, then every page, command and answer is searched.

What there is to walk is read from Django (addresses, commands, options), so a new page, command or option is either
walked, or fails here as not walked.
"""
