-- What submit() was given is read out of JSON once, and look() finds the jobs that it is asked for by
-- their ids. Before, each of five statements had unpacked all jobs of a submit anew, and a look had
-- read all jobs of its run: 150 000 after five minutes of 500 leases a second.

SET LOCAL search_path = fleet, pg_temp;

-- A job as submit() was given it; `place`: which one of the list, from 1 on.
CREATE TYPE given_job AS (
  place bigint, id uuid, kind text, pool text, class text, device text, compiler text, needs text[],
  band smallint, after uuid[], payload jsonb, limit_s double precision, n int, blobs jsonb, key text,
  signature text);

-- Values of the wrong type end it with class 22.
DROP FUNCTION read_jobs(jsonb);
CREATE FUNCTION read_jobs(jobs jsonb) RETURNS given_job[] LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN ARRAY(
    SELECT (
      ordinality, (j->>'id')::uuid, coalesce(j->>'kind', 'run'), coalesce(j->>'pool', 'default'),
      coalesce(j->>'class', ''), coalesce(j->>'device', ''), coalesce(j->>'compiler', ''),
      sorted(j->'needs'), coalesce((j->>'band')::smallint, 1::smallint), sorted(j->'after')::uuid[],
      coalesce(j->'payload', '{}'), coalesce((j->>'limit_s')::double precision, 60),
      coalesce((j->>'n')::int, 0), list(j->'blobs'), j->>'key', j->>'signature')::given_job
    FROM jsonb_array_elements(jobs) WITH ORDINALITY AS each (j, ordinality) ORDER BY ordinality);
END $$;

-- The texts of a list, each once, in order. Few jobs have any.
CREATE FUNCTION sorted(given jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE WHEN list(given) = '[]' THEN '{}'::text[]
              ELSE ARRAY(SELECT DISTINCT v FROM jsonb_array_elements_text(given) v ORDER BY v) END;
END $$;

-- errors: TW400, TW403, TW409 of the job `j`, for a submitter `me` and a run.
DROP FUNCTION check_job(record, text);
CREATE FUNCTION check_job(j given_job, me text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  named text := format('job %s', j.id);
  most double precision;
  missing text;
BEGIN
  IF j.id IS NULL THEN
    PERFORM refuse('TW400', format('job number %s has no id', j.place));
  ELSIF j.kind NOT IN ('run', 'measure', 'race', 'build') THEN
    PERFORM refuse('TW400', format('%s is of the kind %s', named, j.kind), '',
                   'run, measure, race or build');
  ELSIF j.band NOT BETWEEN 0 AND 2 THEN
    PERFORM refuse('TW400', format('%s is in band %s', named, j.band), '', '0, 1 or 2');
  ELSIF j.n NOT BETWEEN 0 AND 10000 THEN
    PERFORM refuse('TW400', format('%s has %s items', named, j.n), '', '0 to 10000');
  ELSIF pg_column_size(j.payload) > 1 << 20 THEN
    PERFORM refuse('TW400', format('the payload of %s is larger than 1 MiB', named), '',
                   'files travel as blobs');
  ELSIF cardinality(j.needs) > 16 OR cardinality(j.after) > 64
        OR jsonb_array_length(j.blobs) > 4096
        OR length(j.class || j.compiler || j.device || array_to_string(j.needs, ',')) > 1024
        OR length(j.key) > 1024 OR length(j.signature) > 4096 THEN
    PERFORM refuse('TW400', format('%s is too large', named),
                   'at most 16 needs, 64 jobs before it, 4096 blobs');
  END IF;
  SELECT max_seconds INTO most FROM pools p WHERE p.pool = j.pool;
  IF most IS NULL THEN
    PERFORM refuse('TW404', format('there is no pool %s', j.pool), '',
                   'its owner makes it: tilewright fleet pool ' || j.pool);
  END IF;
  -- NaN is above every number.
  IF NOT (j.limit_s > 0 AND j.limit_s <= most) THEN
    PERFORM refuse('TW400', format('%s may take %s s', named, j.limit_s),
                   format('the pool %s gives a job more than 0 and at most %s s', j.pool, most));
  END IF;
  IF NOT may(me, j.pool, 'submit', j.class) THEN
    PERFORM refuse('TW403', format('%s may not submit to the pool %s%s', me, j.pool,
                                   CASE j.class WHEN '' THEN '' ELSE ' for ' || j.class END), '',
                   format('its owner allows it: tilewright fleet grant %s --pool %s --submit', me,
                          j.pool));
  END IF;
  IF j.kind = 'measure' THEN
    PERFORM check_measure(j.payload, j.n, named);
  END IF;
  IF j.blobs <> '[]' THEN
    SELECT b->>'sha256' INTO missing FROM jsonb_array_elements(j.blobs) b
    WHERE NOT EXISTS (SELECT FROM blobs w
                      WHERE w.login = me AND w.sha256 = b->>'sha256' AND w.whole) LIMIT 1;
    IF FOUND THEN
      PERFORM refuse('TW409', format('%s needs a blob that is not here', named), missing,
                     'upload it first');
    END IF;
  END IF;
END $$;

-- As 0004_submit.sql says.
CREATE OR REPLACE FUNCTION submit(run uuid, jobs jsonb) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  me text := caller('user');
  its runs;
  given given_job[];
  j given_job;
  wanted uuid[];
  accepted int;
  most int;
BEGIN
  PERFORM durably();
  IF jsonb_typeof(jobs) IS DISTINCT FROM 'array' OR jsonb_array_length(jobs) > 10000 THEN
    PERFORM refuse('TW400', 'jobs are a list of at most 10000');
  END IF;
  its := own_run(run, me);
  IF its.login <> me THEN
    PERFORM refuse('TW403', format('the run %s is of %s', run, its.login));
  END IF;
  -- cancel() waits for this, and then sees the jobs.
  SELECT * INTO its FROM runs r WHERE r.id = run FOR NO KEY UPDATE;
  IF its.cancelled IS NOT NULL OR its.closed IS NOT NULL THEN
    PERFORM refuse('TW409', format('the run %s is over', run),
                   CASE WHEN its.closed IS NULL THEN 'it was cancelled' ELSE 'it was closed' END);
  END IF;
  BEGIN
    given := read_jobs(jobs);
    FOREACH j IN ARRAY given LOOP
      PERFORM check_job(j, me);
    END LOOP;
    -- One submit of a login at a time: they count together, and take their lines in one order.
    SELECT max_ready INTO most FROM logins WHERE login = me FOR NO KEY UPDATE;
    wanted := add_jobs(run, me, given);
  EXCEPTION
    WHEN data_exception OR check_violation THEN
      PERFORM refuse('TW400', 'the jobs are not what they should be', SQLERRM);
  END;
  accepted := cardinality(wanted);
  IF (SELECT count(*) FROM (SELECT FROM jobs w WHERE w.login = me AND w.state <> 'leased'
                            LIMIT most + 1) few) > most AND accepted > 0 THEN
    PERFORM refuse('TW429', format('%s would have more than %s jobs waiting', me, most),
                   'nothing was accepted', 'submit again when some are done');
  END IF;
  UPDATE runs r SET lapsed = NULL, seen = clock_timestamp() WHERE r.id = run;
  RETURN jsonb_build_object('accepted', accepted, 'known', jsonb_array_length(jobs) - accepted,
                            'warnings', warnings_of(wanted));
END $$;

-- Opens the lines of all jobs, in their order, and inserts those that are new. The ids of these.
DROP FUNCTION add_jobs(uuid, text, jsonb);
CREATE FUNCTION add_jobs(run uuid, me text, given given_job[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  queue bigint;
  made uuid[];
  over uuid[];
  theirs uuid;
BEGIN
  FOR queue IN
    SELECT queue_of(w.pool, w.class, w.compiler, w.device, w.needs) FROM (
      SELECT DISTINCT i.pool, i.class, i.compiler, i.device, i.needs FROM unnest(given) i) w
    ORDER BY 1
  LOOP
    PERFORM open_line(queue, me);
  END LOOP;
  WITH fresh AS (
    INSERT INTO jobs (id, seq, run, login, queue, kind, band, after, payload, limit_s, n, state,
                      ready_at, signature, key)
      SELECT i.id, nextval('seqs'), add_jobs.run, me,
             queue_of(i.pool, i.class, i.compiler, i.device, i.needs), i.kind, i.band, i.after,
             i.payload, i.limit_s, i.n,
             CASE WHEN cardinality(i.after) = 0 THEN 'ready' ELSE 'waiting' END,
             clock_timestamp(), i.signature, i.key
      FROM unnest(given) i
      ON CONFLICT (id) DO NOTHING RETURNING id)
  SELECT coalesce(array_agg(id), '{}') INTO made FROM fresh;
  -- A job that ended just before the insertion is in `ended` by now: this looks after it.
  SELECT coalesce(array_agg(e.id), '{}') INTO over FROM ended e WHERE e.id = ANY (made);
  IF over <> '{}' THEN
    DELETE FROM jobs j WHERE j.id = ANY (over);
    made := ARRAY(SELECT m FROM unnest(made) m WHERE m <> ALL (over));
  END IF;
  SELECT i.id INTO theirs FROM unnest(given) i
  WHERE i.id <> ALL (made)
    AND (EXISTS (SELECT FROM jobs j WHERE j.id = i.id AND j.run <> add_jobs.run)
         OR EXISTS (SELECT FROM ended e WHERE e.id = i.id AND e.run <> add_jobs.run)) LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('TW409', format('the id of the job %s is taken', theirs),
                   'another run has it');
  END IF;
  SELECT a INTO theirs FROM unnest(given) i, unnest(i.after) a
  WHERE i.id = ANY (made)
    AND NOT EXISTS (SELECT FROM jobs b WHERE b.id = a AND b.run = add_jobs.run)
    AND NOT EXISTS (SELECT FROM ended b WHERE b.id = a AND b.run = add_jobs.run) LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('TW400', format('a job shall run after %s', theirs), 'the run has no such job');
  END IF;
  INSERT INTO workloads (key, func)
    SELECT DISTINCT ON (1) w.key, i.payload->>'func'
    FROM unnest(given) i, LATERAL (SELECT i.payload->'record'->>'workload') w (key)
    WHERE i.id = ANY (made) AND i.kind = 'measure'
      AND NOT EXISTS (SELECT FROM workloads k WHERE k.key = w.key)
    ORDER BY 1 ON CONFLICT DO NOTHING;
  INSERT INTO job_blobs (job, login, sha256, name)
    SELECT i.id, me, b->>'sha256', coalesce(b->>'name', b->>'sha256')
    FROM unnest(given) i, jsonb_array_elements(i.blobs) b WHERE i.id = ANY (made);
  IF FOUND THEN
    UPDATE blobs SET used = clock_timestamp()
    WHERE login = me AND sha256 IN (SELECT sha256 FROM job_blobs b WHERE b.job = ANY (made))
      AND used < clock_timestamp() - interval '1 hour';
  END IF;
  INSERT INTO events (at, what, job, login)
    SELECT clock_timestamp(), 'submitted', m, me FROM unnest(made) m;
  PERFORM wake(j) FROM jobs j WHERE j.id = ANY (made) AND j.state = 'waiting';
  RETURN made;
END $$;

-- The states of jobs and the results that the caller does not have: `have` counts per job those it
-- has. Without any in `have`: all jobs of the run, from item 0 on. errors: TW400, TW404.
CREATE OR REPLACE FUNCTION look(run uuid, have jsonb) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  its runs := own_run(run, caller('user'));
  now timestamptz := clock_timestamp();
  wanted jsonb := coalesce(nullif(have, 'null'), '{}');
  ids uuid[];  -- NULL: all of the run
BEGIN
  IF its.lapsed IS NOT NULL OR abs(extract(epoch FROM now - its.seen)) > 1 THEN
    UPDATE runs r SET seen = now, lapsed = NULL WHERE r.id = run;
  END IF;
  IF jsonb_typeof(wanted) <> 'object' THEN
    PERFORM refuse('TW400', 'what one has is an object: a number per job');
  ELSIF wanted <> '{}' THEN
    ids := ARRAY(SELECT k::uuid FROM jsonb_object_keys(wanted) k);
  END IF;
  -- One statement, so one view of all: a job cannot be missed while it moves to `ended`.
  RETURN (
    WITH found AS (
      SELECT j.id, j.seq, j.state, '' AS reason, j.device, NULL::uuid AS worker FROM jobs j
      WHERE ids IS NULL AND j.run = look.run
      UNION ALL
      SELECT j.id, j.seq, j.state, '', j.device, NULL FROM jobs j
      WHERE j.id = ANY (ids) AND j.run = look.run
      UNION ALL
      SELECT e.id, e.seq, e.state, e.reason, e.device, e.worker FROM ended e
      WHERE ids IS NULL AND e.run = look.run
      UNION ALL
      SELECT e.id, e.seq, e.state, e.reason, e.device, e.worker FROM ended e
      WHERE e.id = ANY (ids) AND e.run = look.run)
    SELECT jsonb_build_object('jobs', coalesce(jsonb_agg(jsonb_build_object(
        'id', f.id, 'state', f.state, 'reason', f.reason, 'device', d.name,
        'worker', w.host,
        'results', results_of(f.id, coalesce((wanted->>(f.id::text))::int, 0))) ORDER BY f.seq),
        '[]'))
    FROM found f LEFT JOIN devices d ON d.id = f.device
    LEFT JOIN workers w ON w.id = coalesce(f.worker, d.worker));
EXCEPTION
  WHEN data_exception THEN
    PERFORM refuse('TW400', 'what one has is an object: a number per job', SQLERRM);
END $$;

REVOKE ALL ON FUNCTION read_jobs(jsonb), sorted(jsonb), check_job(given_job, text),
  add_jobs(uuid, text, given_job[]) FROM PUBLIC;
