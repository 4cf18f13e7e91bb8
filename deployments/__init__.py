"""How Afresh is run: the command line, the server, schedules, the demonstration."""
