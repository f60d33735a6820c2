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
# job finds there when it starts again on other nodes. The data are read where --config.data and --config.validation
# say. Where that disk is slow, LOCAL_DISK names a folder on a disk of each node, such as /tmp or /scratch: the files and
# folders that these two name are copied there first, and the copies are deleted when the job ends.
LOCAL_DISK=${LOCAL_DISK:-}

set -euo pipefail
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1} # since Slurm 22.05, srun does not take it over from sbatch
copies=$LOCAL_DISK/bert-$SLURM_JOB_ID number=0

on_each_node() {
  srun --ntasks="$SLURM_NNODES" --ntasks-per-node=1 "$@"
}

# Sets `value`, which names files or folders with commas between them, to copies of these; what is no path stays.
copy() {
  local path to paths=("$value") copied=""
  [[ -e $value ]] || IFS=, read -ra paths <<< "$value"
  for path in "${paths[@]}"; do
    [[ -e $path ]] || return 0
  done
  for path in "${paths[@]}"; do
    number=$((number + 1)) # a folder for each, for two may have the same name
    to=$copies/$number/$(basename "$path")
    copied+=,$to
    # The copy gets its name when it is complete.
    on_each_node bash -c 'test -e "$2" ||
      { rm -rf "$2.part" && mkdir -p "${2%/*}" && cp -r "$1" "$2.part" && mv "$2.part" "$2"; }' \
      copy "$path" "$to"
  done
  value=${copied#,}
}

finish() {
  local code=$?
  [[ -z $LOCAL_DISK ]] || on_each_node rm -rf "$copies" || true
  # All tasks end by themselves, so that 143 means that all were stopped by SIGTERM: the run is saved, but not finished.
  [[ $code != 143 ]] || scontrol requeue "$SLURM_JOB_ID"
}
trap finish EXIT

words=("$@")
for i in "${!words[@]}"; do
  if [[ -n $LOCAL_DISK && ${words[i]} =~ ^(--config\.(data|validation)=)(.*) ]]; then
    value=${BASH_REMATCH[3]}
    copy
    words[i]=${BASH_REMATCH[1]}$value
  elif [[ -n $LOCAL_DISK && $i -gt 0 && ${words[i - 1]} =~ ^--config\.(data|validation)$ ]]; then
    value=${words[i]}
    copy
    words[i]=$value
  fi
done
srun --kill-on-bad-exit=0 bert "${words[@]}"
