#include "tilewright/driver/fleet/launchers.h"

#include <fmt/format.h>

#include <algorithm>

#include "tilewright/base/names.h"

namespace tilewright::driver {
namespace {

/// ` --device cpu --device vta:tsim`, quoted for a shell.
std::string device_options(const std::vector<std::string>& devices) {
  std::string text;
  for (const std::string& device : devices) {
    text += " --device ";
    if (device.find_first_of(" '\"$\\`*?#;&|<>()") == std::string::npos) {
      text += device;
      continue;
    }
    text += "'";
    for (const char c : device) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += "'";
  }
  return text;
}

std::string slurm(const std::string& options) {
  return fmt::format(R"(#!/bin/bash
# Workers as an array of Slurm jobs: sbatch THIS_FILE
# Each leaves after five idle minutes, or before its time is over. A signal a minute before, or a
# preemption, lets it give back what it has; --requeue starts it again. It takes the place of this
# shell, so that Slurm's signal reaches it once: a second one would end it at once.
# --exclusive: the whole processor, which measurements need; GPUs may do with less.
#SBATCH --job-name=tilewright-worker
#SBATCH --array=1-8
#SBATCH --time=01:00:00
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --signal=B:TERM@60
#SBATCH --open-mode=append
: "${{TILEWRIGHT_STORE:?export the URL of the fleet first}}"
exec tilewright worker{} --idle-exit 5m --max-time 55m
)",
                     options);
}

std::string kubernetes(const std::vector<std::string>& devices) {
  std::string arguments;
  for (const std::string& device : devices)
    arguments += fmt::format(", \"--device\", \"{}\"", device);
  return fmt::format(R"(# Workers as a Job of Kubernetes: kubectl apply -f THIS_FILE
# The secret tilewright-fleet holds `store` (the URL) and `password`:
#   kubectl create secret generic tilewright-fleet --from-literal=store=... --from-literal=password=...
apiVersion: batch/v1
kind: Job
metadata:
  name: tilewright-worker
spec:
  parallelism: 4
  backoffLimit: 100
  template:
    spec:
      restartPolicy: OnFailure
      terminationGracePeriodSeconds: 60
      securityContext:
        runAsNonRoot: true
        runAsUser: 10001
        seccompProfile:
          type: RuntimeDefault
      containers:
        - name: worker
          image: IMAGE_WITH_TILEWRIGHT
          command: ["tilewright", "worker"{}, "--idle-exit", "10m", "--cache-dir", "/cache"]
          env:
            - name: TILEWRIGHT_STORE
              valueFrom:
                secretKeyRef: {{name: tilewright-fleet, key: store}}
            - name: PGPASSWORD
              valueFrom:
                secretKeyRef: {{name: tilewright-fleet, key: password}}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: {{drop: [ALL]}}
          volumeMounts:
            - {{name: cache, mountPath: /cache}}
      volumes:
        - name: cache
          emptyDir: {{sizeLimit: 10Gi}}
)",
                     arguments);
}

std::string ssh(const std::string& options) {
  return fmt::format(R"(#!/bin/sh
# A worker on each HOST, for as long as its connection lasts: sh THIS_FILE HOST...
# A board that has no room for tilewright needs none of this: tilewright worker --device ssh:BOARD
: "${{TILEWRIGHT_STORE:?export the URL of the fleet first}}"
for host in "$@"; do
  ssh -o BatchMode=yes "$host" \
    "TILEWRIGHT_STORE='$TILEWRIGHT_STORE' tilewright worker{}" &
done
wait
)",
                     options);
}

std::string systemd(const std::string& options) {
  return fmt::format(
      R"(# A worker as a service: put this into /etc/systemd/system/tilewright-worker.service, and
# TILEWRIGHT_STORE=postgresql://... (and PGPASSFILE=...) into /etc/tilewright/worker.env.
[Unit]
Description=Tilewright worker
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/bin/tilewright worker{} --cache-dir /var/cache/tilewright
EnvironmentFile=/etc/tilewright/worker.env
DynamicUser=yes
CacheDirectory=tilewright
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
Restart=always
RestartSec=10
TimeoutStopSec=60

[Install]
WantedBy=multi-user.target
)",
      options);
}

}  // namespace

Result<std::string> launcher_script(const std::string& kind,
                                    const std::vector<std::string>& devices) {
  const std::vector<std::string> offered =
      devices.empty() ? std::vector<std::string>{"cpu"} : devices;
  const std::string options = device_options(offered);
  if (kind == "slurm") return slurm(options);
  if (kind == "k8s") return kubernetes(offered);
  if (kind == "ssh") return ssh(options);
  if (kind == "systemd") return systemd(options);
  return fail(ErrorKind::Usage, fmt::format("there is no launcher '{}'", kind),
              "there are slurm, k8s, ssh and systemd",
              did_you_mean(kind, {"slurm", "k8s", "ssh", "systemd"}));
}

}  // namespace tilewright::driver
