"""What staged jobs cost."""
