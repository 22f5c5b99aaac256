"""Makes drps/_ffi.py of the declarations in drps/_cdef.h. No compiler is needed (CFFI's out-of-line ABI mode).

    python3 build_ffi.py FOLDER     writes FOLDER/drps/_ffi.py
"""
import pathlib
import sys

import cffi

ffi = cffi.FFI()
ffi.cdef((pathlib.Path(__file__).resolve().parent / "drps" / "_cdef.h").read_text(encoding="utf-8"))
ffi.set_source("drps._ffi", None)

if __name__ == "__main__":
    ffi.compile(tmpdir=sys.argv[1])
