"""The HTTP gateway: JSON API, pages and inbox."""
