"""Take over the databases of other programs, LangGraph's own among them, and write threads and items to LangGraph's."""
