"""What pyproject.toml cannot say: the module that CFFI makes of the C header's declarations."""
from setuptools import setup

setup(cffi_modules=["build_ffi.py:ffi"])
