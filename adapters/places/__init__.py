"""Endpoints that files are read from and written to: folders, SFTP, Azure Blob, S3, HTTPS."""
