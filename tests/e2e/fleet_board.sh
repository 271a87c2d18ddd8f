#!/usr/bin/env bash
# A board behind ssh: nothing of this machine is seen there but what goes through the connection.
# `ssh` is a script that starts the runner in a root of its own, and fails in the ways boards do.
# fleet_board.sh PROGRAM RUNNER
runner=$(realpath "$2")
source "$(dirname "$0")/fleet_lib.sh"
state=$work/state
mkdir "$work/bin" "$work/board" "$work/old" && cp "$runner" "$work/board/tilewright-runner" || exit 1
export TW_TEST_FOLDER=$work
cat >"$work/bin/ssh" <<'SSH'
#!/usr/bin/env bash
# ssh [OPTION]... board COMMAND...
work=$TW_TEST_FOLDER
readlink /proc/self/ns/net >"$work/network"
echo "$@" >>"$work/calls"
while [ $# -gt 0 ] && [ "$1" != board ]; do shift; done
shift
board=$work/board
on_board() {
  bwrap --unshare-all --clearenv --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib \
    --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --ro-bind "$board" /board \
    --setenv PATH /board:/usr/bin -- "$@"
}
case $(cat "$work/state") in
  down) echo "ssh: connect to host board port 22: Connection refused" >&2 && exit 255 ;;
  missing) board=$work/bin ;;  # no runner is there
  old) board=$work/old ;;
  cut)  # once the package has arrived
    on_board "$@" | head -n 1
    echo "Connection to board closed by remote host." >&2 && exit 255 ;;
esac
on_board sh -c 'exec "$@"' sh "$@"
SSH
# Of another version; asked to serve, it answers at once, as runners did that said nothing before.
cat >"$work/old/tilewright-runner" <<'OLD'
#!/bin/sh
test "$1" = --version && echo "tilewright-runner 0.0.1 x86-64-v2" && exit
head -c 100 >/dev/null
echo '{"ok": true, "run_ns": [1], "outputs": []}'
cat >/dev/null
OLD
# An emulator runs packages on this machine: it must be confined, network and all.
cat >"$work/bin/emulator" <<EMULATOR
#!/bin/sh
test "\$2" != --serve || ! test -e "$work/state" || exit 9
test "\$2" != --serve || [ "\$(cut -d: -f1 /proc/net/dev | grep -c '[^ l o]')" -le 2 ] || exit 10
exec "\$@"
EMULATOR
chmod 755 "$work"/*/*
PATH=$work/bin:$PATH
board() { echo "$1" >"$state"; }
board up
if ! ssh board true; then
  echo "skipped: no root of its own can be made (bwrap)"
  exit 77
fi

exits 0 "a private server" "postgresql://" -- fleet init --private pool
for failure in down missing old; do
  board $failure
  case $failure in
    down) says="Connection refused" ;;
    missing) says="tilewright-runner: not found" ;;
    old) says="it is 0.0.1, this is" ;;
  esac
  exits 7 "a worker whose board is $failure" "$says" -- worker --device ssh:board
done
exits 2 "no board" "names no board" -- worker --device ssh:-oProxyCommand=x
board up
worker --device ssh:board --tag board
worker --device "runner:$work/bin/emulator $runner" --tag emulator
holds "two devices" within 60 has free 2
holds "ssh has this machine's network" [ "$(cat "$work/network")" = "$(readlink /proc/self/ns/net)" ]

"$program" -q zoo lenet5 -o net.onnx && "$program" -q zoo lenet5 --seed 7 -o other.onnx || exit 1
"$python" "$here/aarch64_files.py" input net.onnx net || exit 1
given=$(cat net.name)=@net.npy
exits 0 "a package" -- compile net.onnx --target x86-64-v2 -o net.twm
exits 0 "another one" -- compile other.onnx --target x86-64-v2 -o other.twm
exits 0 "here" -- run net.twm --input "$given" -o here.npy
for tag in board emulator; do
  exits 0 "run on the $tag" "on " -- run net.twm --worker tag=$tag --input "$given" -o $tag.npy
  holds "has the same bits" cmp here.npy $tag.npy
done
exits 0 "verify" ok -- verify net.onnx --worker tag=board --against interp --input "$given"
exits 0 "bench" ssh:board -- bench net.twm --worker tag=board --duration 0.2
calls=$(wc -l <calls)
exits 0 "an open package" "on " -- run net.twm --worker tag=board --input "$given" -o again.npy
exits 0 "runs again" "on " -- run net.twm --worker tag=board --input "$given" -o again.npy
holds "through the same connection" [ "$(wc -l <calls)" -le $((calls + 1)) ]
tuned() { "$program" --json -q tune net.onnx --worker tag=board --threads 1 --trials 8 --for 200s -o t.twm >t.json; }
holds "tune" tuned
holds "all candidates run there" "$python" -c "
import json
t = json.load(open('t.json'))
assert t['trials'] == 8 and sum(k.get('outcomes', {}).get('ok', 0) for k in t['tasks']) >= 6, t['tasks']"
exits 0 "the result runs there" "on " -- run t.twm --worker tag=board --input "$given"

# fails_as STATE TEXT...: the other package each time, since one that is open needs no new connection.
fails_as() {
  board "$1"
  exits 8 "a board that is $1" "$2" "${3:-error}" -- run other.twm --worker tag=board --input "$given"
  board up
  exits 0 "and is there again" "on " -- run net.twm --worker tag=board --input "$given" -o again.npy
}
fails_as down "did not take the package" "Connection refused"
fails_as missing "did not take the package" "tilewright-runner: not found"
fails_as old "answer is that of another version"
board cut
exits 4 "a connection that is cut" "closed by remote host" -- run other.twm --worker tag=board --input "$given"
for pid in "${workers[@]}"; do kill -TERM "$pid"; done
wait "${workers[@]}"
workers=()
left() { pgrep -f "$work/board" >/dev/null; }
holds "nothing is left of what the workers have started" within 20 eval '! left'
finish
