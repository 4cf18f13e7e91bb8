"""One Prefect task per step of a renewal, each a few lines over the lifecycle.

Retries apply to passing faults alone, which are raised before a side effect. Results are not persisted and
nothing is cached: each step reads its phase in the ledger, so running it again does no harm.
"""
