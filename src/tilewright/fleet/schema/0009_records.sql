-- Records of tuning: measurements, and decisions between them.
--
-- Those of a post carry the target of the device and the login of the job, whatever the worker
-- says. A login sees its own records, and others' from trust 1 on: what another login measured is
-- taken only if a second device of the class came within 10 % of it.

SET LOCAL search_path = fleet, pg_temp;

-- What makes two measurements the same one, and what makes them measurements of the same thing.
CREATE FUNCTION identity_of(r records) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT sha256(convert_to(jsonb_build_array(r.workload, r.target, r.compiler, r.kind, r.schedule,
                                             r.point, r.searcher, r."when", r.cost)::text, 'UTF8'))
$$;
CREATE FUNCTION same_of(r records) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
  SELECT sha256(convert_to(jsonb_build_array(r.workload, r.target, r.compiler, r.kind, r.schedule,
                                             r.point)::text, 'UTF8'))
$$;

-- A row of `records` out of an object with its fields; a missing text is empty, a missing number 0.
CREATE FUNCTION read_record(j jsonb) RETURNS records LANGUAGE plpgsql AS $$
DECLARE
  r records;
BEGIN
  r.workload := coalesce(j->>'workload', '');
  r.name := coalesce(j->>'name', '');
  r.kind := coalesce(j->>'kind', '');
  r.target := coalesce(j->>'target', '');
  r.machine := coalesce(j->>'machine', '');
  r.compiler := coalesce(j->>'compiler', '');
  r.point := coalesce(j->>'point', '');
  r.schedule := coalesce(j->>'schedule', '');
  r.outcome := coalesce(j->>'outcome', '');
  r.reason := coalesce(j->>'reason', '');
  r.cost := coalesce((j->>'cost')::double precision, 0);
  r.unit := coalesce(j->>'unit', '');
  r.least := coalesce((j->>'least')::double precision, 0);
  r.spread := coalesce((j->>'spread')::double precision, 0);
  r.readings := coalesce((j->>'readings')::bigint, 0);
  r.searcher := coalesce(j->>'searcher', '');
  r.seed := coalesce((j->>'seed')::bigint, 0);
  r."when" := coalesce(j->>'when', '');
  r.trust := 0;
  r.made := clock_timestamp();
  RETURN r;
END $$;

-- The object again. Its own columns are nobody's business.
CREATE FUNCTION record_json(r records) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('workload', r.workload, 'name', r.name, 'kind', r.kind,
    'target', r.target, 'machine', r.machine, 'compiler', r.compiler, 'point', r.point,
    'schedule', r.schedule, 'outcome', r.outcome, 'reason', r.reason, 'cost', r.cost,
    'unit', r.unit, 'least', r.least, 'spread', r.spread, 'readings', r.readings,
    'searcher', r.searcher, 'seed', r.seed, 'when', r."when")
$$;

-- Inserts a record, whose `same` is set, unless it is here; whether it did.
CREATE FUNCTION add_record(r records) RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  INSERT INTO records (workload, name, kind, target, machine, compiler, point, schedule, outcome,
                       reason, cost, unit, least, spread, readings, searcher, seed, "when", login,
                       job, item, token, worker, device, class, trust, same, identity, made)
    VALUES (r.workload, r.name, r.kind, r.target, r.machine, r.compiler, r.point, r.schedule,
            r.outcome, r.reason, r.cost, r.unit, r.least, r.spread, r.readings, r.searcher, r.seed,
            r."when", r.login, r.job, r.item, r.token, r.worker, r.device, r.class, r.trust,
            r.same, identity_of(r), r.made)
    ON CONFLICT (identity) DO NOTHING;
  RETURN FOUND;
END $$;

-- The record of a result that is being posted. Its values are the result's, its time is the
-- server's, to the microsecond: two readings are two records even if they are equal.
CREATE FUNCTION measured(result record, job jobs, d devices, now timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  r records := read_record(result.record);
  agree bigint[];
BEGIN
  r.target := d.target;
  r.outcome := result.outcome;
  r.reason := result.reason;
  r.cost := coalesce(result.cost, 0);
  r.least := coalesce(result.least, 0);
  r.spread := coalesce(result.spread, 0);
  r.readings := coalesce(result.readings, 0);
  r.login := job.login;
  r.job := job.id;
  r.item := result.item;
  r.token := d.token;
  r.worker := d.worker;
  r.device := d.id;
  r.class := d.class;
  r.same := same_of(r);
  IF r.outcome = 'ok' THEN
    SELECT array_agg(o.id) INTO agree FROM records o
    WHERE o.same = r.same AND o.outcome = 'ok' AND o.device <> r.device AND o.class = r.class
      AND r.cost BETWEEN o.cost * 0.9 AND o.cost / 0.9;
    r.trust := (agree IS NOT NULL)::int;
    -- What another post has locked is being confirmed by that one: waiting could be for each other.
    UPDATE records SET trust = 1 WHERE id IN (
      SELECT o.id FROM records o WHERE o.id = ANY (agree) AND o.trust = 0
      FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
  FOR i IN 1 .. 100 LOOP
    r."when" := to_char(now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    EXIT WHEN add_record(r);
    now := now + interval '1 us';
  END LOOP;
END $$;

-- Adds records, with the programs that they are about: {key: text}. The number of those that are
-- new. errors: TW400.
CREATE FUNCTION records_add(records jsonb, workloads jsonb) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
#variable_conflict use_variable
DECLARE
  me text := caller('user');
  r records;
  added bigint := 0;
  j jsonb;
BEGIN
  PERFORM durably();
  -- Two that add the same records in another order would wait for each other.
  PERFORM pg_advisory_xact_lock(702236, hashtext(me));
  IF EXISTS (SELECT FROM jsonb_each_text(coalesce(nullif(workloads, 'null'), '{}')) w
             WHERE w.key ~ '^sha256:[0-9a-f]{64}$'
               AND w.key <> 'sha256:' || encode(sha256(convert_to(w.value, 'UTF8')), 'hex')) THEN
    PERFORM refuse('TW400', 'a workload is not what its key says');
  END IF;
  INSERT INTO workloads (key, func)
    SELECT w.key, w.value FROM jsonb_each_text(coalesce(nullif(workloads, 'null'), '{}')) w
    ORDER BY w.key ON CONFLICT DO NOTHING;
  FOR j IN SELECT e FROM jsonb_array_elements(list(records)) WITH ORDINALITY AS x (e, o) ORDER BY o
  LOOP
    r := read_record(j);
    r.login := me;
    r.same := same_of(r);
    added := added + add_record(r)::int;
  END LOOP;
  RETURN added;
EXCEPTION
  WHEN data_exception THEN
    PERFORM refuse('TW400', 'the records are not what they should be', SQLERRM);
END $$;

-- Records that match and that the caller may see. Empty texts match all. `trust`: own, confirmed
-- (own ones, and others' that a second device confirmed), any.
CREATE FUNCTION matching(me text, workload text, target text, compiler text, kind text,
                         ok_only boolean, trust text)
RETURNS SETOF records LANGUAGE sql STABLE AS $$
  SELECT * FROM records r
  WHERE (matching.workload = '' OR r.workload = matching.workload)
    AND (matching.target = '' OR r.target = matching.target)
    AND (matching.compiler = '' OR r.compiler = matching.compiler)
    AND (matching.kind = '' OR r.kind = matching.kind)
    AND (NOT ok_only OR r.outcome = 'ok')
    AND (r.login = me OR matching.trust = 'any' OR matching.trust = 'confirmed' AND r.trust >= 1)
$$;

-- What compile may choose: a time that a machine can need. Imports are not refused for the others:
-- they stay to be looked at.
CREATE FUNCTION plausible(outcome text, cost double precision) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT outcome = 'ok' AND cost >= 0.001 AND cost < 1e15
$$;

-- Records, oldest first, `most` at a time: the next page is after the last id of this one.
CREATE FUNCTION records_page(workload text, target text, compiler text, kind text, ok_only boolean,
                             after_id bigint, most int, trust text DEFAULT 'confirmed')
RETURNS TABLE (id bigint, record jsonb) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT r.id, record_json(r)
    FROM matching(caller('user'), records_page.workload, records_page.target, records_page.compiler,
                  records_page.kind, ok_only, records_page.trust) r
    WHERE r.id > after_id ORDER BY r.id LIMIT least(most, 10000);
END $$;

CREATE FUNCTION records_count(workload text, target text, compiler text, kind text, ok_only boolean,
                              trust text DEFAULT 'confirmed')
RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT count(*) FROM matching(caller('user'), workload, target, compiler, kind, ok_only,
                                        trust));
END $$;

-- The cheapest plausible record that is `ok`, or null.
CREATE FUNCTION records_best(workload text, target text, compiler text, kind text, ok_only boolean,
                             trust text DEFAULT 'confirmed')
RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT record_json(r)
          FROM matching(caller('user'), workload, target, compiler, kind, true, trust) r
          WHERE plausible(r.outcome, r.cost) ORDER BY r.cost, r.id LIMIT 1);
END $$;

-- The `ok` one that was added last, or null.
CREATE FUNCTION records_last(workload text, target text, compiler text, kind text, ok_only boolean,
                             trust text DEFAULT 'confirmed')
RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  RETURN (SELECT record_json(r)
          FROM matching(caller('user'), workload, target, compiler, kind, true, trust) r
          WHERE plausible(r.outcome, r.cost) ORDER BY r.id DESC LIMIT 1);
END $$;

-- The program behind a key, or null. It is no secret: who has the key has had the program.
CREATE FUNCTION workload_text(key text) RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  PERFORM caller('user', 'worker');
  RETURN (SELECT w.func FROM workloads w WHERE w.key = workload_text.key);
END $$;

-- All programs, in the order of their keys (of bytes), `most` at a time: the next page is after the
-- last key of this one.
CREATE FUNCTION workloads_page(after_key text, most int) RETURNS TABLE (key text, func text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  PERFORM caller('user');
  RETURN QUERY
    SELECT w.key, w.func FROM workloads w
    WHERE w.key COLLATE "C" > after_key
    ORDER BY w.key COLLATE "C" LIMIT least(most, 1000);
END $$;

-- Keeps per workload and target the `keep` cheapest plausible records, and the last of each kind
-- that decides what is compiled. Of the caller's records; the owner prunes all. The number removed.
CREATE FUNCTION records_prune(keep int) RETURNS bigint LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user');
  everything boolean := is_owner();
  removed bigint;
BEGIN
  PERFORM durably();
  WITH mine AS (
    SELECT r.id, r.kind, r.workload, r.target, r.compiler, r.login,
           plausible(r.outcome, r.cost) AS good,
           row_number() OVER (PARTITION BY r.login, r.workload, r.target,
                                           plausible(r.outcome, r.cost)
                              ORDER BY r.cost, r.id) AS place
    FROM records r WHERE everything OR r.login = me)
  DELETE FROM records r USING mine m
  WHERE r.id = m.id AND NOT (m.good AND m.place <= keep)
    AND NOT EXISTS (
      SELECT FROM (SELECT max(x.id) AS id FROM mine x
                   WHERE x.good AND x.kind IN ('rule', 'race', 'algorithm')
                   GROUP BY x.login, x.workload, x.target, x.compiler, x.kind) d
      WHERE d.id = m.id);
  GET DIAGNOSTICS removed = ROW_COUNT;
  RETURN removed;
END $$;
