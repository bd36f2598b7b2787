"""Messages: conversion to and from the values of the core, serialized form, QoS.

Imports no other package of ``ros``. Start reading at ``conversions.py``.
"""
