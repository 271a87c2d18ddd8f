-- What a worker posts: results of a job that it has leased.
--
-- One transaction locks the device, compares the token there, stores results and records, moves
-- `next`, and at the last item ends the job; the last job ends the lease. So a repeated post finds
-- its items below `next`, and one under a lease that is over finds another token, or none.

SET LOCAL search_path = fleet, pg_temp;

-- The results of a post, a row per item from `from_item` on; values of the wrong type end it with
-- class 22.
CREATE FUNCTION read_results(results jsonb, from_item int)
RETURNS TABLE (item int, outcome text, reason text, cost double precision, "least" double precision,
               spread double precision, fastest double precision, readings bigint, output jsonb)
LANGUAGE sql STABLE AS $$
  SELECT from_item + ordinality::int - 1, coalesce(outcome, ''), coalesce(reason, ''), cost,
         "least", spread, fastest, readings, output
  FROM ROWS FROM (jsonb_to_recordset(results) AS (
    outcome text, reason text, cost double precision, "least" double precision,
    spread double precision, fastest double precision, readings bigint, output jsonb))
  WITH ORDINALITY
$$;

-- Whether a number is missing or one that a measurement can give. NaN is above infinity.
CREATE FUNCTION measurable(number double precision) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(number >= 0 AND number < 'infinity', true)
$$;

-- Stores items from `next` on; those that were measured become records. What a worker posts is data,
-- and not believed: one wrong item, an old one too, undoes all. errors: TW400.
CREATE FUNCTION store_results(results jsonb, from_item int, job jobs, d devices) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  upto int := from_item + jsonb_array_length(results);
  bad record;
BEGIN
  WITH given AS MATERIALIZED (SELECT * FROM read_results(results, from_item)),
  stored AS (
    INSERT INTO results (job, item, token, outcome, reason, cost, least, spread, fastest, readings,
                         output, at)
      SELECT job.id, r.item, d.token, r.outcome, r.reason, r.cost, r.least, r.spread, r.fastest,
             r.readings, r.output, clock_timestamp()
      FROM given r WHERE r.item >= job.next),
  noted AS (
    INSERT INTO events (at, what, job, token, device, worker, login, note)
      SELECT clock_timestamp(), 'posted', job.id, d.token, d.id, d.worker, job.login,
             format('%s to %s', job.next, upto - 1)
      WHERE upto > job.next)
  SELECT r.item, CASE
      WHEN r.outcome NOT IN ('ok', 'invalid', 'compile_error', 'wrong_result', 'timeout', 'crash',
                             'oom', 'lost') THEN format('its outcome is %s', left(r.outcome, 40))
      WHEN NOT (measurable(r.cost) AND measurable(r.least) AND measurable(r.spread)
                AND measurable(r.fastest) AND coalesce(r.readings, 0) >= 0)
        THEN 'a number is negative or not finite'
      WHEN r.outcome = 'ok' AND r.cost = 0 THEN 'its cost is 0'
      WHEN r.outcome = 'ok' AND r.cost IS NULL AND job.kind = 'measure' THEN 'it has no cost'
      WHEN r.least > r.cost THEN 'its fastest reading is above its cost'
      WHEN length(r.reason) > 65536 OR length(r.output::text) > 65536 THEN 'a text is over 64 KiB'
    END AS why
  INTO bad FROM given r ORDER BY 2 NULLS LAST LIMIT 1;
  IF bad.why IS NOT NULL THEN
    PERFORM refuse('TW400', format('item %s of job %s is refused', bad.item, job.id), bad.why);
  ELSIF upto <= job.next OR job.kind <> 'measure' THEN
    RETURN;
  ELSIF d.emulated THEN
    PERFORM remember_emulated(job, d);
  ELSE
    PERFORM make_records(job, d);
  END IF;
END $$;

-- What answers the post of a job that the lease does not hold: `known` if it ended, or its items
-- came, under this token; else `stale`, and what was posted goes to `late`.
CREATE FUNCTION not_leased(w workers, device bigint, job uuid, token bigint, from_item int,
                           results jsonb)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  count int := jsonb_array_length(results);
BEGIN
  IF EXISTS (SELECT FROM ended e WHERE e.id = not_leased.job AND e.token = not_leased.token
             AND e.worker = w.id AND e.state IN ('done', 'failed')
             AND from_item + count <= e.next) THEN
    RETURN 'known';
  END IF;
  IF count > 0 AND count = (
       SELECT count(*) FROM results r
       WHERE r.job = not_leased.job AND r.token = not_leased.token
         AND r.item >= from_item AND r.item < from_item + count AND r.outcome <> 'lost') THEN
    RETURN 'known';
  END IF;
  INSERT INTO late (at, job, token, device, worker, from_item, results)
    VALUES (clock_timestamp(), not_leased.job, not_leased.token, not_leased.device, w.id, from_item,
            not_leased.results);
  PERFORM note('late', not_leased.job, not_leased.token, not_leased.device, w.id, NULL);
  RETURN 'stale';
END $$;

-- Posts results from `from_item` on: {outcome, reason, cost, least, spread, fastest, readings,
-- output}. `failed`: after them the job ends as failed, for this reason.
-- ok: stored. known: stored before. stale: not stored, the lease or the job is over; a job that is
-- over because its run was cancelled is named in `cancel`, and the others of the lease go on.
-- A post is a renewal, too. errors: TW400, TW403, TW409 (items before `from_item` are missing).
CREATE FUNCTION post(worker uuid, secret text, device bigint, job uuid, token bigint, from_item int,
                     results jsonb, failed text)
RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  w workers := known_worker(worker, secret);
  d devices;
  j jobs;
  answer text;
  taken record;
BEGIN
  results := list(results);
  IF jsonb_typeof(results) <> 'array' OR jsonb_array_length(results) > 10000
     OR pg_column_size(results) > 8 << 20 OR coalesce(from_item, -1) < 0 OR token IS NULL THEN
    PERFORM refuse('TW400', 'results are a list of at most 10000 and 8 MiB, from item 0 or later');
  END IF;
  d := leased_under(w, device, token);
  IF d.id IS NOT NULL THEN
    SELECT * INTO j FROM jobs v
    WHERE v.id = post.job AND v.token = d.token AND v.device = d.id FOR NO KEY UPDATE;
  END IF;
  IF j.id IS NULL THEN
    answer := not_leased(w, device, job, token, from_item, results);
  ELSE
    BEGIN
      taken := take(j, d, w, from_item, results, failed);
    EXCEPTION
      WHEN data_exception OR not_null_violation THEN
        PERFORM refuse('TW400', format('the results of job %s are not what they should be', job),
                       SQLERRM);
    END;
    -- Most posts end their lease: then there is nothing to cancel, and nobody to yield to.
    IF taken.answer = 'ok' AND taken.over THEN
      RETURN jsonb_build_object('answer', 'ok', 'cancel', '[]'::jsonb,
                                'drain', w.state IS DISTINCT FROM 'up', 'yield', false);
    END IF;
    answer := taken.answer;
  END IF;
  RETURN jsonb_build_object('answer', answer) || signs(d, w)
    || CASE WHEN answer = 'stale' AND d.id IS NOT NULL
            THEN jsonb_build_object('cancel', signs(d, w)->'cancel' || to_jsonb(job)) ELSE '{}' END;
END $$;

-- The same of a job that the lease holds; device and job are locked. `over`: the lease has ended.
CREATE FUNCTION take(j jobs, d devices, w workers, from_item int, results jsonb, failed text,
                     OUT answer text, OUT over boolean)
LANGUAGE plpgsql AS $$
DECLARE
  count int := jsonb_array_length(results);
  upto int := from_item + count;
BEGIN
  answer := 'ok';
  over := false;
  IF EXISTS (SELECT FROM runs r WHERE r.id = j.run AND r.cancelled IS NOT NULL) THEN
    over := end_job(j, 'cancelled', 'its run was cancelled', w.id);
    answer := 'stale';
  ELSIF from_item > j.next THEN
    PERFORM refuse('TW409', format('items %s to %s of job %s are missing', j.next, from_item - 1,
                                   j.id), 'posts of a job follow each other');
  ELSIF upto > j.n THEN
    PERFORM refuse('TW400', format('job %s has %s items, not %s', j.id, j.n, upto));
  ELSE
    IF count > 0 THEN
      answer := CASE WHEN upto > j.next OR failed IS NOT NULL THEN 'ok' ELSE 'known' END;
      PERFORM store_results(results, from_item, j, d);
      j.next := greatest(j.next, upto);
    END IF;
    IF failed IS NOT NULL THEN
      over := end_job(j, 'failed', failed, w.id);
    ELSIF j.next = j.n THEN
      over := end_job(j, 'done', '', w.id);
    ELSIF answer = 'ok' AND count > 0 THEN
      UPDATE jobs v SET next = j.next WHERE v.id = j.id;
    END IF;
  END IF;
  IF over THEN
    PERFORM free_device(d, 'done');
  ELSE
    UPDATE devices v SET losses = 0, since = began(v, t.now, m.lease_s), renewed = t.now,
                         ends = t.now + m.lease_s * interval '1 s'
    FROM meta m, (SELECT clock_timestamp() AS now) t WHERE v.id = d.id;
  END IF;
END $$;
