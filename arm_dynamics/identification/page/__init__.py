"""Recording, identification and gravity calibration, step by step on a page that moves an arm.

May import all packages of identification, and viewer, recording and all below. Start reading at
``workbench.py``. The modules hold no mathematics: ``work.py`` calls the library in another process.
"""
