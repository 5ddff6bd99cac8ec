"""Settings: one module per pipeline, `common` for what several processes need."""
