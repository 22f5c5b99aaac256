#!/usr/bin/env bash
# The Python package: its own tests and examples against this build's library, and its installation by pip and by CMake.
. "$(dirname "$0")/lib.sh"

python=/usr/bin/python3
library=$(readlink -f "$tools/../libdrps.so.0" || true)
[[ -e $library ]] || skip "there is no shared library: build with -DBUILD_SHARED_LIBS=ON"
! nm -D "$library" | grep -qE ' U __(asan|tsan|ubsan)_' || skip "the library has sanitizers, which Python does not load"
for module in cffi numpy scipy sklearn pandas matplotlib pytest; do
    "$python" -c "import $module" 2>/dev/null || skip "$python has no $module (package python3-$module)"
done
export DRPS_LIBRARY=$library DRPS_TOOLS=$tools MPLBACKEND=Agg MPLCONFIGDIR=$work/matplotlib PYTHONDONTWRITEBYTECODE=1
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

# What the tests write is thrown away: nothing waits for the disk.
if ${CC:-cc} -shared -fPIC -o no_sync.so "$source/tests/support/no_sync.c" 2>/dev/null; then quick=$work/no_sync.so; fi
test_python() { LD_PRELOAD=${quick:-} "$python" -m pytest -q -p no:cacheprovider "$@"; }

# As pip installs it, without the network, below a folder of its own.
cp -r "$source/python" package
mkdir site
if "$python" -m pip --version >pip.txt 2>&1; then
    "$python" -m pip install --quiet --no-build-isolation --no-deps --no-index --target site ./package >pip.txt 2>&1 ||
        fail "pip does not install it: $(tail -5 pip.txt)"
else
    (cd package && "$python" build_ffi.py "$work/site" && cp -r drps/. "$work/site/drps")
fi
export PYTHONPATH=$work/site
cd site
"$python" -c 'import drps; assert drps.__file__.startswith("'"$work"'/site"), drps.__file__; print(drps.library_version())' >/dev/null
[[ -e drps/py.typed && -e drps/_ffi.py ]] || fail "py.typed or _ffi.py was not installed"

test_python --durations=5 "$source/python/tests" || fail "tests of the package"
test_python --doctest-modules --pyargs drps --ignore-glob='*_ffi.py' || fail "examples in the package's texts"
if "$python" -c 'import mypy' 2>/dev/null; then
    "$python" -m mypy --cache-dir "$work/mypy" --ignore-missing-imports drps || fail "types do not fit"
fi

# As CMake installs it, for a package.
if [[ -e $tools/../python/cmake_install.cmake && -e $tools/../python/drps/_ffi.py ]]; then
    DESTDIR=$work/root cmake -DCMAKE_INSTALL_COMPONENT=python -DCMAKE_INSTALL_PREFIX=/usr -P "$tools/../python/cmake_install.cmake" >/dev/null
    (cd "$work" && PYTHONPATH=$work/root/usr/lib/python3/dist-packages "$python" -c 'import drps; drps.LogisticRegression; drps.plot') ||
        fail "what CMake installs cannot be imported"
    diff <(cd "$work/site/drps" && find . -name '*.py' | LC_ALL=C sort) \
        <(cd "$work/root/usr/lib/python3/dist-packages/drps" && find . -name '*.py' | LC_ALL=C sort) ||
        fail "pip and CMake install other files"
fi
