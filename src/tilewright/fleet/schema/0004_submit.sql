-- What users call to have work done: new_run, submit, submit_run, look, cancel, close_run.
--
-- enable_seqscan is off in the functions that are called often: a plan that was made while a table
-- was small would read all of it later, and stays with its connection. jit is off in all: compiling
-- takes longer than any of these queries.

SET LOCAL search_path = fleet, pg_temp;

-- The run, if it is the caller's (the owner of the schema may touch all). errors: TW404.
CREATE FUNCTION own_run(run uuid, me text) RETURNS runs LANGUAGE plpgsql AS $$
DECLARE
  found runs;
BEGIN
  SELECT * INTO found FROM runs r WHERE r.id = own_run.run;
  IF found.id IS NULL OR (found.login <> me AND NOT is_owner()) THEN
    PERFORM refuse('TW404', format('%s has no run %s', me, run));
  END IF;
  RETURN found;
END $$;

-- Registers a run: jobs belong to one. Again with the same id: nothing. `keep`: its jobs stay even
-- if nobody looks at them. errors: TW409 (the id is another login's).
CREATE FUNCTION new_run(run uuid, command text, keep boolean) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  me text := caller('user');
BEGIN
  PERFORM durably();
  INSERT INTO runs (id, login, command, made, seen, keep)
    VALUES (run, me, left(command, 4096), clock_timestamp(), clock_timestamp(),
            coalesce(new_run.keep, false))
    ON CONFLICT DO NOTHING;
  IF NOT EXISTS (SELECT FROM runs r WHERE r.id = run AND r.login = me) THEN
    PERFORM refuse('TW409', format('the id of the run %s is taken', run));
  END IF;
END $$;

-- What submit() was given, a row per job; values of the wrong type end it with class 22.
-- (0016_batches.sql replaces it.)
CREATE FUNCTION read_jobs(jobs jsonb)
RETURNS TABLE (place bigint, id uuid, kind text, pool text, class text, device text, compiler text,
               needs text[], band smallint, after uuid[], payload jsonb, limit_s double precision,
               n int, blobs jsonb, key text, signature text)
LANGUAGE sql STABLE AS $$
  SELECT ordinality, (j->>'id')::uuid, coalesce(j->>'kind', 'run'), coalesce(j->>'pool', 'default'),
         coalesce(j->>'class', ''), coalesce(j->>'device', ''), coalesce(j->>'compiler', ''),
         ARRAY(SELECT DISTINCT v FROM jsonb_array_elements_text(list(j->'needs')) v ORDER BY v),
         coalesce((j->>'band')::smallint, 1::smallint),
         ARRAY(SELECT DISTINCT v::uuid FROM jsonb_array_elements_text(list(j->'after')) v),
         coalesce(j->'payload', '{}'), coalesce((j->>'limit_s')::double precision, 60),
         coalesce((j->>'n')::int, 0), list(j->'blobs'), j->>'key', j->>'signature'
  FROM jsonb_array_elements(jobs) WITH ORDINALITY AS each (j, ordinality)
$$;

-- errors: TW400, TW403, TW409 of the job `j`, for a submitter `me` and a run.
-- (0016_batches.sql replaces it.)
CREATE FUNCTION check_job(j record, me text) RETURNS void LANGUAGE plpgsql AS $$
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
  ELSIF length(j.payload::text) > 1 << 20 THEN
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
  SELECT b->>'sha256' INTO missing FROM jsonb_array_elements(j.blobs) b
  WHERE NOT EXISTS (SELECT FROM blobs w
                    WHERE w.login = me AND w.sha256 = b->>'sha256' AND w.whole) LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('TW409', format('%s needs a blob that is not here', named), missing,
                   'upload it first');
  END IF;
END $$;

-- errors: TW400 of what a job of kind `measure` holds: the store makes records of it.
CREATE FUNCTION check_measure(payload jsonb, n int, named text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  bad text;
  field text;
BEGIN
  IF n NOT BETWEEN 1 AND 256 OR jsonb_typeof(payload->'candidates') IS DISTINCT FROM 'array'
     OR jsonb_array_length(payload->'candidates') <> n THEN
    bad := format('it has %s items and not as many candidates, of which there are 1 to 256', n);
  ELSIF jsonb_typeof(payload->'record') IS DISTINCT FROM 'object'
     OR (payload->'record'->>'seed')::bigint IS NULL
     OR coalesce((payload->>'threads')::int, 0) NOT BETWEEN 1 AND 4096 THEN
    bad := 'it has a record with a seed, and 1 to 4096 threads';
  ELSIF jsonb_typeof(payload->'func') IS DISTINCT FROM 'string' OR payload->'record'->>'workload'
     IS DISTINCT FROM 'sha256:' || encode(sha256(convert_to(payload->>'func', 'UTF8')), 'hex') THEN
    bad := 'the workload of its record is not the hash of its program';
  ELSIF EXISTS (
      SELECT FROM jsonb_array_elements(payload->'candidates') c
      WHERE jsonb_typeof(c->'schedule') IS DISTINCT FROM 'string'
         OR jsonb_typeof(c->'point') IS DISTINCT FROM 'string'
         OR length(c->>'schedule') > 65536 OR length(c->>'point') > 4096) THEN
    bad := 'a candidate is a schedule of at most 64 KiB and a point of at most 4 KiB';
  END IF;
  FOREACH field IN ARRAY ARRAY['name', 'kind', 'machine', 'compiler', 'unit', 'searcher'] LOOP
    IF bad IS NULL AND (jsonb_typeof(payload->'record'->field) IS DISTINCT FROM 'string'
                        OR length(payload->'record'->>field) > 1024) THEN
      bad := format('the %s of its record is a text of at most 1024 characters', field);
    END IF;
  END LOOP;
  IF bad IS NOT NULL THEN
    PERFORM refuse('TW400', format('%s is no job of kind measure', named), bad,
                   'submit it with the program that the worker has');
  END IF;
END $$;

-- Accepts jobs: all of them or none. Those that are here already, ended ones too, are only counted:
-- who got no answer sends the same again.
-- errors: TW400, TW403, TW404, TW409 (a blob is missing, the run is cancelled), TW429 (queue full).
-- (0016_batches.sql replaces it.)
CREATE FUNCTION submit(run uuid, jobs jsonb) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  me text := caller('user');
  its runs;
  j record;
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
    FOR j IN SELECT * FROM read_jobs(jobs) LOOP
      PERFORM check_job(j, me);
    END LOOP;
    -- One submit of a login at a time: they count together, and take their lines in one order.
    SELECT max_ready INTO most FROM logins WHERE login = me FOR NO KEY UPDATE;
    FOR j IN
      SELECT DISTINCT q AS queue FROM read_jobs(jobs) i,
        LATERAL queue_of(i.pool, i.class, i.compiler, i.device, i.needs) q ORDER BY 1
    LOOP
      PERFORM open_line(j.queue, me);
    END LOOP;
    wanted := add_jobs(run, me, jobs);
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

-- new_run and submit at once: a round trip and a commit less, for commands that somebody waits for.
CREATE FUNCTION submit_run(run uuid, command text, jobs jsonb) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  PERFORM new_run(run, command, false);
  RETURN submit(run, jobs);
END $$;

-- The line of a login in a queue, locked until the end of the transaction. If the login has nothing
-- ready there yet, those who listen are told.
CREATE FUNCTION open_line(queue bigint, login text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  q queues;
  line lines;
BEGIN
  SELECT * INTO q FROM queues WHERE id = open_line.queue;
  INSERT INTO lines (queue, login, idle) VALUES (open_line.queue, open_line.login, true)
    ON CONFLICT DO NOTHING;
  SELECT * INTO line FROM lines l
  WHERE l.queue = open_line.queue AND l.login = open_line.login FOR NO KEY UPDATE;
  IF line.idle OR NOT EXISTS (
      SELECT FROM (VALUES (0), (1), (2)) b (band) CROSS JOIN LATERAL (
        SELECT FROM jobs j
        WHERE j.queue = line.queue AND j.band = b.band AND j.login = line.login
          AND j.state = 'ready' AND j.seq >= line.low LIMIT 1) ready) THEN
    PERFORM tell(q);
  END IF;
  IF NOT line.idle THEN
    RETURN;
  END IF;
  IF q.class <> '' THEN
    PERFORM join_class(q.class, login);
  END IF;
  UPDATE lines l SET idle = false WHERE l.queue = open_line.queue AND l.login = open_line.login;
  UPDATE queues SET used = clock_timestamp()
    WHERE id = q.id AND used < clock_timestamp() - interval '1 day';
END $$;

-- Inserts those that are new; the lines are locked. The ids of these.
-- (0016_batches.sql replaces it.)
CREATE FUNCTION add_jobs(run uuid, me text, given jsonb) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  made uuid[];
  over uuid[];
  theirs uuid;
BEGIN
  WITH fresh AS (
    INSERT INTO jobs (id, seq, run, login, queue, kind, band, after, payload, limit_s, n, state,
                      ready_at, signature, key)
      SELECT i.id, nextval('seqs'), add_jobs.run, me,
             queue_of(i.pool, i.class, i.compiler, i.device, i.needs), i.kind, i.band, i.after,
             i.payload, i.limit_s, i.n,
             CASE WHEN cardinality(i.after) = 0 THEN 'ready' ELSE 'waiting' END,
             clock_timestamp(), i.signature, i.key
      FROM (SELECT * FROM read_jobs(given) ORDER BY place) i
      ON CONFLICT (id) DO NOTHING RETURNING id)
  SELECT coalesce(array_agg(id), '{}') INTO made FROM fresh;
  -- A job that ended just before the insertion is in `ended` by now: this looks after it.
  SELECT coalesce(array_agg(e.id), '{}') INTO over FROM ended e WHERE e.id = ANY (made);
  DELETE FROM jobs j WHERE j.id = ANY (over);
  made := ARRAY(SELECT m FROM unnest(made) m WHERE m <> ALL (over));
  SELECT i.id INTO theirs FROM read_jobs(given) i
  WHERE EXISTS (SELECT FROM jobs j WHERE j.id = i.id AND j.run <> add_jobs.run)
     OR EXISTS (SELECT FROM ended e WHERE e.id = i.id AND e.run <> add_jobs.run) LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('TW409', format('the id of the job %s is taken', theirs),
                   'another run has it');
  END IF;
  SELECT a INTO theirs FROM jobs j, unnest(j.after) a
  WHERE j.id = ANY (made)
    AND NOT EXISTS (SELECT FROM jobs b WHERE b.id = a AND b.run = add_jobs.run)
    AND NOT EXISTS (SELECT FROM ended b WHERE b.id = a AND b.run = add_jobs.run) LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('TW400', format('a job shall run after %s', theirs), 'the run has no such job');
  END IF;
  INSERT INTO workloads (key, func)
    SELECT DISTINCT ON (1) j.payload->'record'->>'workload', j.payload->>'func' FROM jobs j
    WHERE j.id = ANY (made) AND j.kind = 'measure'
      AND NOT EXISTS (SELECT FROM workloads w WHERE w.key = j.payload->'record'->>'workload')
    ORDER BY 1 ON CONFLICT DO NOTHING;
  INSERT INTO job_blobs (job, login, sha256, name)
    SELECT i.id, me, b->>'sha256', coalesce(b->>'name', b->>'sha256')
    FROM read_jobs(given) i, jsonb_array_elements(i.blobs) b WHERE i.id = ANY (made);
  UPDATE blobs SET used = clock_timestamp()
  WHERE login = me AND sha256 IN (SELECT sha256 FROM job_blobs b WHERE b.job = ANY (made))
    AND used < clock_timestamp() - interval '1 hour';
  INSERT INTO events (at, what, job, login)
    SELECT clock_timestamp(), 'submitted', m, me FROM unnest(made) m;
  PERFORM wake(j) FROM jobs j WHERE j.id = ANY (made) AND j.state = 'waiting';
  RETURN made;
END $$;

-- What a submitter should know of jobs that nobody takes now. They wait: devices register late.
CREATE FUNCTION warnings_of(ids uuid[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  q record;
  texts text[] := '{}';
  versions text;
BEGIN
  FOR q IN
    SELECT u.*, concat_ws(', ', 'pool ' || u.pool, nullif('class ' || u.class, 'class '),
                          nullif('device ' || u.device, 'device '),
                          nullif('tags ' || array_to_string(u.needs, ' '), 'tags ')) AS wishes,
           (SELECT count(*) FROM serves s WHERE s.queue = u.id) AS devices,
           (SELECT count(*) FROM serves s JOIN devices d ON d.id = s.device
            WHERE s.queue = u.id AND d.state IN ('free', 'leased')) AS on_now
    FROM queues u WHERE u.id IN (SELECT DISTINCT queue FROM jobs WHERE id = ANY (ids))
  LOOP
    IF q.devices = 0 THEN
      texts := texts || format('no device fits yet (%s): the jobs wait', q.wishes);
    ELSIF q.on_now = 0 THEN
      texts := texts || format('each device that fits is off (%s): the jobs wait', q.wishes);
    ELSIF q.compiler <> '' THEN
      SELECT string_agg(format('%s of %s', count, compiler), ', ' ORDER BY compiler) INTO versions
      FROM (SELECT w.compiler, count(DISTINCT w.id)
            FROM serves s JOIN reaches r ON r.device = s.device JOIN workers w ON w.id = r.worker
            WHERE s.queue = q.id AND w.state = 'up' GROUP BY w.compiler) w
      HAVING NOT bool_or(compiler = q.compiler);
      IF versions IS NOT NULL THEN
        texts := texts || format('no worker has the compiler %s (%s): the jobs wait', q.compiler,
                                 versions);
      END IF;
    END IF;
  END LOOP;
  RETURN to_jsonb(texts);
END $$;

-- The states of jobs and the results that the caller does not have: `have` counts per job those it
-- has. Without any in `have`: all jobs of the run, from item 0 on. errors: TW400, TW404.
-- (0016_batches.sql replaces it.)
CREATE FUNCTION look(run uuid, have jsonb) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  its runs := own_run(run, caller('user'));
  now timestamptz := clock_timestamp();
  wanted jsonb := coalesce(nullif(have, 'null'), '{}');
BEGIN
  IF its.lapsed IS NOT NULL OR abs(extract(epoch FROM now - its.seen)) > 1 THEN
    UPDATE runs r SET seen = now, lapsed = NULL WHERE r.id = run;
  END IF;
  IF jsonb_typeof(wanted) <> 'object' THEN
    PERFORM refuse('TW400', 'what one has is an object: a number per job');
  END IF;
  -- One statement, so one view of all: a job cannot be missed while it moves to `ended`.
  RETURN (
    WITH found AS (
      SELECT j.id, j.seq, j.state, '' AS reason, j.device, NULL::uuid AS worker FROM jobs j
      WHERE j.run = look.run AND (wanted = '{}' OR wanted ? j.id::text)
      UNION ALL
      SELECT e.id, e.seq, e.state, e.reason, e.device, e.worker FROM ended e
      WHERE e.run = look.run AND (wanted = '{}' OR wanted ? e.id::text))
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

-- Stable: it sees what the statement that calls it sees.
CREATE FUNCTION results_of(job uuid, from_item int) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT coalesce(jsonb_agg(jsonb_build_object(
        'item', r.item, 'outcome', r.outcome, 'reason', r.reason, 'cost', r.cost, 'least', r.least,
        'spread', r.spread, 'fastest', r.fastest, 'readings', r.readings, 'output', r.output)
        ORDER BY r.item), '[]')
    FROM results r WHERE r.job = results_of.job AND r.item >= from_item);
END $$;

-- Ends the jobs of a run: those that no device has at once, the others with their next post or with
-- their lease. The number of those that ended at once. errors: TW404.
CREATE FUNCTION cancel(run uuid) RETURNS int LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM durably();
  PERFORM own_run(run, caller('user'));
  UPDATE runs r SET cancelled = coalesce(r.cancelled, clock_timestamp()) WHERE r.id = run;
  RETURN end_unstarted(run, 'its run was cancelled');
END $$;

-- Ends the jobs of a run that no device has.
CREATE FUNCTION end_unstarted(run uuid, reason text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  job jobs;
  count int := 0;
BEGIN
  FOR job IN
    SELECT * FROM jobs j WHERE j.run = end_unstarted.run AND j.state IN ('waiting', 'ready')
    ORDER BY j.seq FOR UPDATE
  LOOP
    -- One that waited for another may have ended with it.
    IF EXISTS (SELECT FROM jobs j WHERE j.id = job.id) THEN
      PERFORM end_job(job, 'cancelled', reason);
    END IF;
    count := count + 1;
  END LOOP;
  RETURN count;
END $$;

-- Removes the results of a run, whose submitter has them all now. What is not over is cancelled.
-- errors: TW404.
CREATE FUNCTION close_run(run uuid) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET jit = off AS $$
BEGIN
  PERFORM cancel(run) WHERE EXISTS (SELECT FROM jobs j WHERE j.run = close_run.run);
  PERFORM own_run(run, caller('user'));
  UPDATE runs r SET closed = coalesce(r.closed, clock_timestamp()) WHERE r.id = run;
  DELETE FROM results s WHERE s.job IN (SELECT e.id FROM ended e WHERE e.run = close_run.run
                                        UNION ALL
                                        SELECT j.id FROM jobs j WHERE j.run = close_run.run);
END $$;
