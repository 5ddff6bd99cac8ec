"""Import types: each module with a `TYPE` is one."""
