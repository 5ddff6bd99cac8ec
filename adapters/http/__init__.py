"""What docflow posts to the servers of others, and how it protects itself and them."""
