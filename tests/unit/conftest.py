"""Properties are true or false on a busy machine too: none has a deadline."""

from hypothesis import settings

settings.register_profile("hypic", deadline=None)
settings.load_profile("hypic")
