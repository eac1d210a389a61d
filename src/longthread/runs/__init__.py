"""Begin, execute, resume, stop, delegate and approve runs, and their events. Never imports LangGraph."""
