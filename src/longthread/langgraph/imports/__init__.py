"""Take over the databases of other programs, those of LangGraph's own savers among them."""
