"""One canary for every surface: secrets and hostile text are planted, then everything that shows anything is walked.

What there is to walk is read from Django (addresses, commands, options), so a new page, command or option is either
walked, or fails here as not walked.
"""
