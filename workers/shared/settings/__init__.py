"""Settings: one module per pipeline, beside `common` and `gateway`.

Every class reads one mapping, never the process's environment by itself. Modules are imported
where a process starts or a command opens something: pydantic-settings takes a moment to load.
"""
