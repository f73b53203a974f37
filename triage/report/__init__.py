"""Reports for people and scripts: text, Markdown, JSON."""
