#!/usr/bin/env bash
# Makes Debian packages of the tools, the library, its headers and the Python module in FOLDER/packages (build-package), and lets
# lintian look at them where it is installed. They run on any x86-64 processor.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-build-package}
# The same source gives the same packages.
if [[ -z ${SOURCE_DATE_EPOCH-} ]]; then SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CHANGELOG.md); fi
export SOURCE_DATE_EPOCH

cmake -S . -B "$folder" -DDRPS_PACKAGES=ON -DCMAKE_INSTALL_PREFIX=/usr -DBUILD_SHARED_LIBS=ON -DDRPS_NATIVE=OFF -DDRPS_BUILD_TESTS=OFF \
    -DDRPS_BUILD_BENCH=OFF -DCMAKE_C_FLAGS="-ffile-prefix-map=$PWD=. ${CFLAGS-}"
cmake --build "$folder" -j "${JOBS:-$(nproc)}"
rm -rf "$folder/packages"
(cd "$folder" && cpack)
ls -l "$folder"/packages/*.deb
if [[ -x $(command -v lintian) ]]; then
    lintian --fail-on error --allow-root --suppress-tags initial-upload-closes-no-bugs "$folder"/packages/*.deb
else
    echo "lintian is not installed: nothing looked at the packages"
fi
