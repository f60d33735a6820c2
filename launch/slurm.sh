#!/bin/bash
# Trains under Slurm with one task a GPU. Submit it from a folder that all nodes share, where `bert` is on the path:
#
#   sbatch launch/slurm.sh pretrain --config=pretrain:base --config.data=prepared/mine --workdir=runs/base
#
# Copy this file and change the lines below, or give options in front of it: sbatch --nodes=4 launch/slurm.sh ...
#
#SBATCH --job-name=bert
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=8     # as many as GPUs; no --gpus-per-task, for a task must see the GPUs of its whole node
#SBATCH --cpus-per-task=8
#SBATCH --time=24:00:00
#SBATCH --signal=TERM@300       # five minutes before that, the run saves a checkpoint and ends; then it is queued again
#SBATCH --requeue               # so it is after preemption, and when a node fails
#SBATCH --output=%x-%j.log      # the lines of process 0, and errors of the others with their number
#SBATCH --open-mode=append

# --workdir must lie on a disk that all nodes share: checkpoints, logs, the model, and the compiled programs, which a
# job finds there when it starts again on other nodes. The data are read where --config.data says. Where that disk is
# slow, LOCAL_DISK names a folder on a disk of each node, such as /tmp or /scratch; they are copied there first, and the
# copies are deleted when the tasks have ended.
LOCAL_DISK=${LOCAL_DISK:-}

set -euo pipefail
words=("$@")
for i in "${!words[@]}"; do
  if [[ -n $LOCAL_DISK && ${words[i]} == --config.data=* ]]; then
    data=${words[i]#*=}
    copy=$LOCAL_DISK/bert-$SLURM_JOB_ID/$(basename "$data")
    # The copy gets its name when it is complete.
    srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 bash -c 'test -e "$2" ||
      { rm -rf "$2.part" && mkdir -p "${2%/*}" && cp -r "$1" "$2.part" && mv "$2.part" "$2"; }' copy "$data" "$copy"
    words[i]=--config.data=$copy
  fi
done

# All tasks end by themselves, so that 143 means that all were stopped by SIGTERM: the run is saved, but not finished.
code=0
srun --kill-on-bad-exit=0 bert "${words[@]}" || code=$?
if [[ -n $LOCAL_DISK ]]; then
  srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 rm -rf "$LOCAL_DISK/bert-$SLURM_JOB_ID" || true
fi
if [[ $code == 143 ]]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
