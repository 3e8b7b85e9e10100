import setup as _  # writes the synchronous client
