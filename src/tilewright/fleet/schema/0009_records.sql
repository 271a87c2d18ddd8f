-- Records of tuning: measurements, and decisions between them.
--
-- Those of a post are made by the store: all texts are the job's, that is its submitter's; the worker
-- gives numbers. A login sees its own records, and others' from trust 1 on: what another login
-- measured is taken only if a second device of the class came within 10 % of it.

SET LOCAL search_path = fleet, pg_temp;

-- What makes two records measurements of the same thing: half a SHA-256 is enough to tell things
-- apart, and makes half as large an index. What the candidates of a job have in common is hashed once,
-- by family_of(). No text has a zero byte: it ends one.
CREATE FUNCTION family_of(workload text, target text, compiler text, kind text) RETURNS bytea
LANGUAGE sql STABLE AS $$
  SELECT sha256(convert_to(jsonb_build_array(workload, target, compiler, kind)::text, 'UTF8'))
$$;
CREATE FUNCTION same_of(family bytea, schedule text, point text) RETURNS bytea
LANGUAGE sql STABLE AS $$
  SELECT substr(sha256(family || convert_to(schedule, 'UTF8') || '\x00'
                       || convert_to(point, 'UTF8')), 1, 16)
$$;

-- What makes two measurements of the same thing one and the same: few are compared with each other, so
-- a quick hash is enough.
CREATE FUNCTION identity_of(searcher text, "when" text, cost double precision) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT hashtextextended("when", hashtextextended(searcher, hashfloat8extended(cost, 0)))
$$;

-- The target of records that a device of this class makes, of kernels on so many threads: as in
-- records of who measures on his own machine.
CREATE FUNCTION target_of(class text, threads int) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN class LIKE 'cpu:%' THEN class || ':' || threads ELSE class END
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
            r.same, identity_of(r.searcher, r."when", r.cost), r.made)
    ON CONFLICT (same, identity) DO NOTHING;
  RETURN FOUND;
END $$;

-- Whether two costs of one candidate are alike: within 10 %. `ratio`: of their logarithms.
CREATE FUNCTION alike(ratio double precision) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT abs(ratio) <= -ln(0.9::double precision)
$$;

-- Makes the records of a job's items from `next` on, whose results have just been stored. Records
-- get times a microsecond apart, so that two equal readings are two records.
CREATE FUNCTION make_records(job jobs, d devices) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
  known bigint[];
BEGIN
  WITH s AS MATERIALIZED (  -- at once: each look at a payload unpacks all of it
    SELECT r.*, p.candidates, target_of(d.class, p.threads) AS target,
           family_of(r.workload, target_of(d.class, p.threads), r.compiler, r.kind) AS family,
           family_of(r.workload, target_of(d.class, p.threads), r.compiler, 'rule') AS rule_family
    FROM jsonb_to_record(job.payload) AS p (record jsonb, candidates jsonb, threads int)
    CROSS JOIN LATERAL jsonb_to_record(p.record) AS r (
      workload text, name text, kind text, machine text, compiler text, unit text, searcher text,
      seed bigint)),
  made AS (
    INSERT INTO records (workload, name, kind, target, machine, compiler, point, schedule, outcome,
                         reason, cost, unit, least, spread, readings, searcher, seed, "when", login,
                         job, item, token, worker, device, class, same, identity, made)
      SELECT s.workload, s.name, k.kind, s.target, s.machine, s.compiler, c.point, c.schedule,
             r.outcome, r.reason, coalesce(r.cost, 0), s.unit, coalesce(r.least, 0),
             coalesce(r.spread, 0), coalesce(r.readings, 0), k.searcher, s.seed, k."when",
             job.login, job.id, r.item, d.token, d.worker, d.id, d.class, k.same,
             identity_of(k.searcher, k."when", coalesce(r.cost, 0)), now
      FROM s CROSS JOIN results r
      CROSS JOIN LATERAL jsonb_to_record(s.candidates->r.item) AS c (schedule text, point text)
      CROSS JOIN LATERAL (
        SELECT CASE c.point WHEN '' THEN 'rule' ELSE s.kind END AS kind,
               CASE c.point WHEN '' THEN 'rule' ELSE s.searcher END AS searcher,
               to_char((now + (r.item - job.next) * interval '1 us') AT TIME ZONE 'UTC',
                       'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "when",
               same_of(CASE c.point WHEN '' THEN s.rule_family ELSE s.family END, c.schedule,
                       c.point) AS same OFFSET 0) k
      WHERE r.job = job.id AND r.item >= job.next
      RETURNING id, same, outcome)
  SELECT array_agg(m.id) INTO known FROM made m
  WHERE m.outcome = 'ok'
    AND EXISTS (SELECT FROM records t WHERE t.same = m.same AND t.device <> d.id);
  IF known IS NOT NULL THEN
    PERFORM compare_records(known, d);
  END IF;
END $$;

-- What another device of the class has measured, too, makes pairs; where the two are alike both are
-- trusted.
CREATE FUNCTION compare_records(ids bigint[], d devices) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  others bigint[];
  ratios double precision[];
  confirmed bigint[];
BEGIN
  WITH met AS (
    SELECT m.id, o.id AS other, o.device, ln(m.cost) - ln(o.cost) AS ratio
    FROM records m CROSS JOIN LATERAL (
      SELECT t.id, t.device, t.cost FROM records t
      WHERE t.same = m.same AND t.outcome = 'ok' AND t.device <> d.id AND t.class = d.class
        AND t.token >= (SELECT v.sound_from FROM devices v
                        WHERE v.id = t.device AND v.state <> 'suspect')
      ORDER BY t.id DESC LIMIT 4) o
    WHERE m.id = ANY (ids))
  SELECT array_agg(device), array_agg(ratio),
         array_agg(id) FILTER (WHERE alike(ratio)) || array_agg(other) FILTER (WHERE alike(ratio))
  INTO others, ratios, confirmed FROM met;
  IF others IS NOT NULL THEN
    PERFORM add_pairs(d.id, others, ratios);
    -- What another post has locked is being confirmed by that one: waiting could be for each other.
    UPDATE records SET trust = 1 WHERE id IN (
      SELECT o.id FROM records o WHERE o.id = ANY (confirmed) AND o.trust = 0
      FOR NO KEY UPDATE SKIP LOCKED);
  END IF;
END $$;

-- The same of an emulated device, without records: its results remember what was measured where, and
-- pairs are found among those that are still there.
CREATE FUNCTION remember_emulated(job jobs, d devices) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  shared jsonb;
  candidates jsonb;
  target text;
  family bytea;
  others bigint[];
  ratios double precision[];
BEGIN
  SELECT p.record, p.candidates, target_of(d.class, p.threads) INTO shared, candidates, target
  FROM jsonb_to_record(job.payload) AS p (record jsonb, candidates jsonb, threads int);
  family := family_of(shared->>'workload', target, shared->>'compiler', shared->>'kind');
  UPDATE results r SET device = d.id, same = same_of(
      family, candidates->r.item->>'schedule', candidates->r.item->>'point')
    WHERE r.job = (remember_emulated.job).id AND r.item >= (remember_emulated.job).next
      AND r.outcome = 'ok';
  SELECT array_agg(o.device), array_agg(ln(m.cost) - ln(o.cost)) INTO others, ratios
  FROM results m CROSS JOIN LATERAL (
    SELECT t.device, t.cost FROM results t JOIN devices v ON v.id = t.device
    WHERE t.same = m.same AND t.device <> d.id AND v.class = d.class AND v.state <> 'suspect'
      AND t.token >= v.sound_from
    ORDER BY t.token DESC LIMIT 4) o
  WHERE m.job = (remember_emulated.job).id AND m.item >= (remember_emulated.job).next
    AND m.outcome = 'ok';
  IF others IS NOT NULL THEN
    PERFORM add_pairs(d.id, others, ratios);
  END IF;
END $$;

-- Remembers that a device's costs were so many times (`ratios`: logarithms) those of others.
CREATE FUNCTION add_pairs(device bigint, others bigint[], ratios double precision[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO pairs (device, other, ratio)
    SELECT add_pairs.device, u.other, u.ratio FROM unnest(others, ratios) AS u (other, ratio)
    UNION ALL
    SELECT u.other, add_pairs.device, -u.ratio FROM unnest(others, ratios) AS u (other, ratio);
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
    r.same := same_of(family_of(r.workload, r.target, r.compiler, r.kind), r.schedule, r.point);
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
