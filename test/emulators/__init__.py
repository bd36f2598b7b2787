"""Emulated motors of several manufacturers, written from data sheets, independent of the drivers."""
