"""Models: which families are known, and those that SGLang 0.5.14 does not register itself.

SGLang imports the modules of this package when it looks for models (``EntryClass``).
"""
