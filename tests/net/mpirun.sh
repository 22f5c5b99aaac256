#!/usr/bin/env bash
# mpirun.sh PROGRAM: the tests of a program that are for MPI, in two processes on this machine.
set -euo pipefail
program=$1
. "$(dirname "${BASH_SOURCE[0]}")/../support/mpi.sh"

why=$(no_mpi "$(dirname "$program")") || { echo "SKIPPED: $why"; exit 77; }
exec "${mpirun[@]}" -n 2 "$program"
