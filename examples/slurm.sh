#!/bin/bash
# Training on several machines under Slurm, a rank on each. It goes on from its checkpoints when a rank is lost, when a
# machine fails and Slurm queues the job again, and when the job is preempted. PLAN, for as many workers as there are
# nodes, and MODEL lie on a file system that all nodes have.
#
#   sbatch --nodes=4 examples/slurm.sh PLAN MODEL --insecure [other options of drps-train]
#
# --insecure trusts the cluster's network; else give --keys, a folder of each node's own, and PEERS, a file with their
# addresses and public keys (docs/operations.md).
#SBATCH --job-name=drps-train
#SBATCH --ntasks-per-node=1
#SBATCH --requeue
#SBATCH --open-mode=append

plan=$1 model=$2
shift 2
peers=${PEERS:-$model.peers.$SLURM_JOB_ID}
# The nodes may be others than last time.
[[ -n ${PEERS:-} ]] || scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/\$/:${PORT:-7000}/" >"$peers"

# 0 is done; 1 and 2 would fail again. Else ranks were lost: the others have ended, and all start again. Where a rank is lost
# at the start, the others wait for it as long as --timeout says.
status=75
for ((attempt = 0; attempt < ${ATTEMPTS:-10}; attempt++)); do
    srun --kill-on-bad-exit=0 drps-train "$plan" -o "$model" --peers "$peers" --resume "$@"
    status=$?
    ((status > 2)) || break
    echo "ranks were lost (status $status): starting again"
done
[[ -n ${PEERS:-} ]] || rm -f "$peers"
exit $status
