"""Files before and after each edit, so that every edit can be undone."""
