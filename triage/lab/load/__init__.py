"""Who asks for what: people who chat, coding agents, batch jobs."""
