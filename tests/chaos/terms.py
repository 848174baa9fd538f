"""For how long things last in a run, in seconds; apart from the settings, which can be read only once a server runs."""

TTL = 3.0
TICKET_TTL = 6.0
