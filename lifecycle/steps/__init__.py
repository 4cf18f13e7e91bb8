"""The eight steps of a renewal. Each reads its phase first, looks before it acts, and is safe to run twice."""
