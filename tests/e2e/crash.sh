#!/usr/bin/env bash
# Runs that are killed at random instants and resumed end with the model of a run that was not disturbed: bench/crash.sh, in short.
. "$(dirname "$0")/lib.sh"
export DRPS_TOOLS=$tools TMPDIR=$work
bash "$source/bench/crash.sh" --kills 30 --jobs 2 || {
    kept=$(mktemp -d /tmp/drps-crash.XXXXXX)
    mv "$work"/drps-crash.* "$kept"
    fail "the folder is now in $kept"
}
