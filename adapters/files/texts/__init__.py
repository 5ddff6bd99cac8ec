"""Text and metadata of documents of all kinds, read in processes of their own."""
