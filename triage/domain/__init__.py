"""The vocabulary: facts as frozen types. Imports nothing else of triage."""
