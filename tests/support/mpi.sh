# What tests under mpirun share. shellcheck shell=bash

# More processes than processors may run here, and root may start them in a container.
mpirun=(timeout 300 mpirun --oversubscribe --mca btl_base_warn_component_unused 0)
[[ $EUID != 0 ]] || mpirun+=(--allow-run-as-root)
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # Open MPI does not give back all that it has

# no_mpi TOOLS: fails where tests over MPI cannot run, and says why.
no_mpi() {
    [[ -x $(command -v mpirun) ]] || { echo "mpirun is not installed"; return 1; }
    mpirun --version 2>&1 | grep -q "Open MPI" || { echo "mpirun is not that of Open MPI"; return 1; }
    local module
    module=$(find "$1/.." -path '*/drps/drps-mpi.so' | head -1)
    [[ -n $module ]] || { echo "this build has no MPI"; return 1; }
    ! nm -D "$module" | grep -q ' U __tsan_' || { echo "the thread sanitizer does not know what Open MPI does"; return 1; }
}
