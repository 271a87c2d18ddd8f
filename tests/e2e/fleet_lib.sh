# What the tests of a fleet have in common: folders of their own, workers that end with the test, and
# a private server in $work/pool. It sources lib.sh.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
chmod 711 "$work"  # a server of root runs as the user postgres, who has to get through
export XDG_CONFIG_HOME=$work/config XDG_CACHE_HOME=$work/cache
unset TILEWRIGHT_STORE
workers=()
leave() {
  for pid in "${workers[@]}"; do kill -TERM "$pid" 2>/dev/null; done
  wait 2>/dev/null
  "$program" -q fleet stop --private "$work/pool" 2>/dev/null
  rm -rf "$work"
}
trap leave EXIT

# worker OPTION...: starts one and remembers its process.
worker() {
  "$program" worker "$@" >"$work/worker${#workers[@]}.log" 2>&1 &
  workers+=($!)
}
# sql STATEMENT: in the database $url, as its owner; prints the first value.
sql() {
  "$python" -c "
import psycopg2, sys
with psycopg2.connect(sys.argv[1]) as c, c.cursor() as k:
    k.execute(sys.argv[2])
    print(k.fetchone()[0] if k.description else '')" "$url" "$1"
}
# hold_inserts TABLE MOMENT CONDITION: whoever inserts a row of which the condition holds (of NEW) waits
# from now on, up to a minute, until let_go. `held`: whether somebody waits.
hold_inserts() {
  sql "CREATE TABLE IF NOT EXISTS public.passed (moment text);
       CREATE OR REPLACE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN
         IF NOT EXISTS (SELECT FROM public.passed WHERE moment = TG_ARGV[0]) THEN PERFORM pg_sleep(60); END IF;
         RETURN NEW;
       END';
       CREATE TRIGGER hold_$2 BEFORE INSERT ON $1 FOR EACH ROW WHEN ($3) EXECUTE FUNCTION public.hold('$2')" >"$log"
}
held() { [ "$(sql "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")" -gt 0 ]; }
# let_go MOMENT: who comes from now on does not wait; who waits already does until its connection ends.
let_go() { sql "INSERT INTO public.passed VALUES ('$1')" >"$log"; }
# devices STATE: how many devices are in it.
devices() {
  "$program" --json fleet status 2>/dev/null |
    "$python" -c "import json,sys; print(sum(d['state'] == '$1' for d in json.load(sys.stdin)['status']['devices']))"
}
has() { [ "$(devices "$1")" = "$2" ]; }
