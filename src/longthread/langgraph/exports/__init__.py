"""Write LangGraph threads and items to the databases of LangGraph's own savers and stores."""
