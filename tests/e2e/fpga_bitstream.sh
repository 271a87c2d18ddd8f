#!/usr/bin/env bash
# A program as a bitstream by open tools, and what happens where one cannot be made.
# fpga_bitstream.sh PROGRAM EXAMPLE
source "$(dirname "$0")/lib.sh"
example=$(realpath "$2")
ice40=(--target fpga --hw ice40up5k)
limit=1500

exits 0 "tools are named" "nextpnr-ice40" "icepack" -- doctor

# Refusals, before any tool runs.
exits 3 "no open tool for the family" "no open tool makes a bitstream" -- \
  synth "$example" --target fpga --hw zynq7020 --bitstream none.bin
exits 2 "an accelerator is no program" "--target fpga --hw ice40up5k" -- synth vta --bitstream none.bin
sed 's/h = 16, w = 16/h = 80, w = 80/' "$example" >large.tw
exits 6 "an argument that no RAM holds" "bytes: needs 51200 of 32768" -- \
  synth large.tw "${ice40[@]}" --bitstream none.bin
sed 's/bias: i16/bias: i32/' "$example" >wide.tw
exits 3 "elements that no port moves" "its ports move 2 bytes at a time" -- \
  synth wide.tw "${ice40[@]}" --bitstream none.bin

# Tools that are missing, fail or do not end; Yosys here only says what it would have made.
mkdir tools
cat >tools/yosys <<'END'
#!/bin/sh
[ "$1" = -V ] && exec echo "Yosys 0.23"
echo "     SB_LUT4    ${LUTS:-10}" >stat.txt
echo "{}" >top.json
END
cat >tools/nextpnr-ice40 <<'END'
#!/bin/sh
[ "$1" = --version ] && exec echo "nextpnr-ice40 (Version ${VERSION:-0.4})"
[ -n "${KILLED:-}" ] && kill -9 $$
[ -n "${SLEEPS:-}" ] && exec sleep 100
echo "ERROR: this is its last line"
exit 1
END
chmod +x tools/*
bitstream=(synth "$example" "${ice40[@]}" --bitstream none.bin)
old_path=$PATH
export PATH=$work/tools:$PATH
exits 7 "a tool that fails" "this is its last line" -- "${bitstream[@]}"
VERSION=0.3 exits 7 "a tool that is too old" "nextpnr-ice40 0.3 is too old" -- "${bitstream[@]}"
LUTS=6000 exits 6 "more cells than there are" "LUTs: needs 6000 of 5280" -- "${bitstream[@]}"
KILLED=1 exits 9 "a tool that is killed" "nextpnr-ice40" -- "${bitstream[@]}"
SLEEPS=1 exits 9 "a tool that does not end" "did not finish" -- "${bitstream[@]}" --limit 1
SLEEPS=1 "$program" "${bitstream[@]}" >"$log" 2>&1 &
busy=$!
within 20 grep -q "placing and routing" "$log"
sleep_runs() { pgrep -P "$busy" -x sleep >/dev/null; }
within 20 sleep_runs
kill -INT "$busy"
wait "$busy"
[ $? -eq 130 ] && ok "Ctrl-C ends a tool" || bad "Ctrl-C ends a tool" "another exit code"
mkdir few
for tool in yosys echo timeout grep sed tail; do ln -s "$(type -P $tool)" few/; done
PATH=$work/few
exits 7 "a tool that is missing" "nextpnr-ice40" -- "${bitstream[@]}"
export PATH=$old_path
holds "nothing was written" test ! -e none.bin

# The whole way.
"$program" --json synth "$example" "${ice40[@]}" --bitstream conv.bin --limit 1200 >report.json 2>"$log" &&
  ok "a bitstream" || bad "a bitstream" "synth failed"
holds "it is there" test -s conv.bin
holds "fast enough, right, and in the cycles of the simulator" "$python" - <<'END'
import json
report = json.load(open("report.json"))
assert report["clock_mhz"] >= 24, report
assert report["values_different"] == 0, report
assert report["cycles"] == report["cycles_simulator"] > 18432, report
assert report["lut"] <= 5280 and report["dsp"] == 8, report
END

finish
