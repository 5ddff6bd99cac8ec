"""Rules for vector data: names, types, encodings, schemas; what is pure of reading and loading."""
