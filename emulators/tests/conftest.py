"""Rules of these tests."""

from hypothesis import settings

settings.register_profile("emulators", deadline=None, max_examples=100)
settings.load_profile("emulators")
