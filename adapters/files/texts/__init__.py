"""Text and metadata of PDF, DOCX, EML, MSG and plain text, read in processes of their own."""
