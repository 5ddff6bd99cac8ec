"""Rasters, read and written by GDAL in processes of their own.

`pool.FileRasters` is the port; everything else runs in the process of `child`.
"""
