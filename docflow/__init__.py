"""Parts of docflow that packages of others may use."""
