#!/bin/bash
# Trains on all hosts of a Cloud TPU slice, one process a host, and shows the lines of process 0. Start it anywhere with
# gcloud; inside tmux, for the run ends with the connection:
#
#   TPU=my-slice ZONE=us-east5-a launch/tpu_pod.sh pretrain --config=pretrain:base \
#       --config.data=/mnt/shared/prepared/mine --workdir=/mnt/shared/runs/base
#
# Each host needs a checkout in the home folder, with `pip install '.[tpu]'` in its .venv, and the shared disk. After a
# preemption, create the slice again and start the same command: it goes on from its newest checkpoint.
set -euo pipefail
: "${TPU:?TPU is not set; give the name of the slice: TPU=my-slice ZONE=us-east5-a launch/tpu_pod.sh ...}"
: "${ZONE:?ZONE is not set; give the zone of the slice: TPU=my-slice ZONE=us-east5-a launch/tpu_pod.sh ...}"
checkout=${CHECKOUT:-bert-jax} # seen from the home folder of each host

printf -v there 'cd %q && exec .venv/bin/bert' "$checkout"
printf -v words ' %q' "$@" --coordinator=auto
exec gcloud compute tpus tpu-vm ssh "$TPU" --zone="$ZONE" --worker=all --command="$there$words"
