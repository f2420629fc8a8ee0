"""Rules of every test: a property is true or false on a busy machine too, so none has a deadline."""

from hypothesis import settings

settings.register_profile("hypic", deadline=None)
settings.load_profile("hypic")
