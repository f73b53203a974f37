"""Pure functions: Situation to Evidence to Diagnosis. Imports domain alone."""
