"""Emulated motors of several manufacturers, written from data sheets, not from the drivers."""
