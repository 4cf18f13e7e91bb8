"""The Hermes Agent (0.19) as a worker: its database, its log, its configuration, its faces."""
