"""The life of a long-lived worker, told without an orchestrator: values, rules and adapters."""
