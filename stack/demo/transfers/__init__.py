"""The demo's transfers: files carried from an SFTP server to blobs."""
