#!/usr/bin/env bash
# Compiling twice gives the same bytes, for a few networks and every target; scripts/replay notices a
# schedule that differs.   replay.sh PROGRAM
source "$(dirname "$0")/lib.sh"

replay() { "$python" "$here/../../scripts/replay" "$@"; }
# says CODE WHAT TEXT COMMAND...: the command ends with CODE and prints TEXT.
says() {
  local want=$1 what=$2 text=$3
  shift 3
  "$@" >"$log" 2>&1
  local code=$?
  if [ $code -ne "$want" ]; then bad "$what" "exit code $code instead of $want"
  elif ! grep -qF -e "$text" "$log"; then bad "$what" "'$text' is not in the output"
  else ok "$what"; fi
}

# To explain a case takes as long as to compile it: two small networks on every target show that it is repeatable.
says 0 "packages of one program are equal" "cases: equal" \
  replay "$program" "$program" --sample --explained '^(lenet5|dqn) '

# The same program with other options: another schedule, so other packages.
cat > other <<END
#!/bin/sh
case "\$*" in *compile*) exec "$program" "\$@" -O 1;; esac
exec "$program" "\$@"
END
chmod +x other
only=(--sample --only '^lenet5 cpu-2$')
# The same packages, and other words.
cat > words <<END
#!/bin/sh
case "\$*" in *explain*) echo "other words";; esac
exec "$program" "\$@"
END
chmod +x words
says 1 "another schedule is noticed" "1 differ" replay "$program" ./other "${only[@]}"
says 1 "the difference is named" "lenet5 cpu-2: " replay "$program" ./other "${only[@]}"
says 1 "other words are noticed" "what explain prints" replay "$program" ./words "${only[@]}"
says 0 "packages alone" "cases: equal" replay "$program" ./words "${only[@]}" --explained nothing
says 2 "no such program" "is no program" replay "$program" ./missing
says 2 "no such case" "no case matches" replay "$program" "$program" --only nothing
finish
