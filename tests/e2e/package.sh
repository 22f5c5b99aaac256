#!/usr/bin/env bash
# Debian packages of this build: lintian finds no error, and in a root made by debootstrap they are installed, used by a user, and
# removed without a trace (scripts/clean_root.sh). Skipped where the build makes no packages (DRPS_PACKAGES), or no root can be made.
. "$(dirname "$0")/lib.sh"
build=$(realpath "$tools/..")

grep -q '^DRPS_PACKAGES:.*=ON$' "$build/CMakeCache.txt" || skip "this build makes no packages: configure with -DDRPS_PACKAGES=ON"
cpack --config "$build/CPackConfig.cmake" -B "$work" >cpack.txt 2>&1 || fail "cpack: $(tail -n 5 cpack.txt)"
packages=(packages/*.deb)
((${#packages[@]} >= 3)) || fail "${#packages[@]} packages: $(tail -n 5 cpack.txt)"
if command -v lintian >/dev/null; then
    lintian --fail-on error --allow-root --suppress-tags initial-upload-closes-no-bugs "${packages[@]}" || fail "lintian finds errors"
else
    echo "not tried: lintian, which is not installed"
fi
status=0
bash "$source/scripts/clean_root.sh" "$work/packages" || status=$?
exit $status
