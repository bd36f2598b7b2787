"""Recorded motion as arrays: readers of recordings, tables and datasets, and its plausibility.

May import the rest of ``recording`` and all below. Start reading at ``motion_readers.py``; every
reader returns the ``MotionData`` of ``motion_data.py``.
"""
