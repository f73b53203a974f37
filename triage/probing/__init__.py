"""Active questions: requests that cost the engine work. Budgeted, announced, stoppable, marked."""
