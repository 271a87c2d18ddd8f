#!/usr/bin/env bash
# What the program says when something is wrong, word by word: every command of messages.txt must end
# with its exit code and print what stands below it. messages.sh PROGRAM [update]: `update` writes the
# file anew, for a review of what changed.
update=${2:-}
source "$(dirname "$0")/lib.sh" "$1"
"$python" "$here/cli_files.py" write || exit 1
mkdir vta && (cd vta && "$python" "$here/vta_files.py" write) && mv vta/odd.onnx vta/text.npz . || exit 1
printf 'log_batch = 99\n' >bad.toml
"$program" -q zoo lenet5 -o lenet5.onnx || exit 1
"$program" -q compile lenet5.onnx --samples none -o bare.twm || exit 1
"$program" -q compile lenet5.onnx --target vta --quantize random --fallback cpu -o vta.twm 2>/dev/null || exit 1
mkdir bin
ln -s "$program" bin/tilewright
PATH=$work/bin:$PATH

# said COMMAND: what it prints and how it ends, as in the file.
said() {
  echo "$ $1"
  timeout "$limit" bash -c "$1" </dev/null >"$log" 2>&1
  local code=$?
  sed "s|$work/||g" "$log"
  echo "[exit $code]"
  echo
}
commands() { sed -n 's/^\$ //p' "$here/messages.txt"; }
if [ -n "$update" ]; then
  sed '/^\$ /,$d' "$here/messages.txt" >new.txt
  while IFS= read -r command; do said "$command" >>new.txt; done < <(commands)
  cp new.txt "$here/messages.txt"
  exit
fi

while IFS= read -r command; do
  said "$command" >got.txt
  # From the command to the empty line behind its exit code.
  awk -v want="\$ $command" '$0 == want { on = 1 } on { print } on && /^\[exit / { print ""; exit }' \
    "$here/messages.txt" >want.txt
  holds "B4 $command" diff want.txt got.txt
done < <(commands)
finish
