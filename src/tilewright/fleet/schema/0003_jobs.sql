-- What happens to jobs and leases, whoever asks: parts of the functions that callers use.
--
-- Locks are taken in the order device, job, result, then line, then share. A line or share that is
-- locked already is waited for only by who brings jobs into the line; tick() passes it over.

SET LOCAL search_path = fleet, pg_temp;

-- Whether the device can take the jobs of the queue, as far as the two alone tell.
CREATE FUNCTION fits(d devices, q queues) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT q.pool = d.pool AND q.class IN ('', d.class) AND q.device IN ('', d.name)
     AND q.needs <@ d.tags
$$;

-- The queue of these wishes, made if it is new. Its pool stays locked then: a device that enrols at
-- the same moment waits, and sees it.
CREATE FUNCTION queue_of(pool text, class text, compiler text, device text, needs text[])
RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  found bigint;
  made queues;
BEGIN
  SELECT id INTO found FROM queues q
  WHERE q.pool = queue_of.pool AND q.class = queue_of.class AND q.compiler = queue_of.compiler
    AND q.device = queue_of.device AND q.needs = queue_of.needs
    FOR KEY SHARE;  -- gc() removes queues that nobody uses
  IF found IS NOT NULL THEN
    RETURN found;
  END IF;
  PERFORM FROM pools p WHERE p.pool = queue_of.pool FOR NO KEY UPDATE;
  INSERT INTO queues (pool, class, compiler, device, needs)
    VALUES (queue_of.pool, queue_of.class, queue_of.compiler, queue_of.device, queue_of.needs)
    ON CONFLICT DO NOTHING RETURNING * INTO made;
  IF made.id IS NULL THEN
    RETURN queue_of(pool, class, compiler, device, needs);
  END IF;
  INSERT INTO serves (device, queue)
    SELECT d.id, made.id FROM devices d WHERE d.pool = made.pool AND fits(d, made);
  RETURN made.id;
END $$;

-- The virtual time of a share now, and likewise its urgent seconds: half of them are forgotten each
-- hour. A clock that was set back does not make them grow. One time for all rows of a statement:
-- what is equal stays equal.
CREATE FUNCTION faded(value double precision, at timestamptz) RETURNS double precision
LANGUAGE sql STABLE AS $$
  SELECT value * exp(-ln(2.0) * greatest(0, extract(epoch FROM statement_timestamp() - at)) / 3600)
$$;

-- The least virtual time among the logins of a class that have or want something; 0: there are
-- none.
CREATE FUNCTION least_active(class text, but text) RETURNS double precision
LANGUAGE sql STABLE AS $$
  SELECT coalesce(min(faded(s.vtime, s.at)), 0) FROM shares s
  WHERE s.class = least_active.class AND s.login <> but
    AND (EXISTS (SELECT FROM lines l JOIN queues q ON q.id = l.queue
                 WHERE l.login = s.login AND NOT l.idle AND q.class IN ('', s.class))
         OR EXISTS (SELECT FROM devices d
                    WHERE d.state = 'leased' AND d.login = s.login AND d.class = s.class))
$$;

-- A login begins to want something of a class. Who was away starts where the least active one is:
-- what it did not use then is not owed to it.
CREATE FUNCTION join_class(class text, login text) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  floor double precision := least_active(class, login);
BEGIN
  INSERT INTO shares (class, login, vtime, at)
    VALUES (join_class.class, join_class.login, floor, clock_timestamp())
    ON CONFLICT (class, login) DO UPDATE
      SET vtime = greatest(faded(shares.vtime, shares.at), floor),
          urgent = faded(shares.urgent, shares.at), at = clock_timestamp();
END $$;

-- Adds seconds to a share; false: somebody else has it, or it has just been changed. A share that
-- changed with each lease would serialise them, and leave a dead row each time.
CREATE FUNCTION charge(class text, login text, seconds double precision, urgent double precision,
                       seldom boolean)
RETURNS boolean LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  share shares;
  weight double precision;
BEGIN
  -- One that has just been changed is not even locked: a lock would be written to the disk, too.
  SELECT * INTO share FROM shares s
  WHERE s.class = charge.class AND s.login = charge.login
    AND NOT (seldom AND abs(extract(epoch FROM clock_timestamp() - s.at)) < 0.25)
    FOR NO KEY UPDATE SKIP LOCKED;
  IF share.class IS NULL THEN
    IF seldom OR EXISTS (SELECT FROM shares s
                         WHERE s.class = charge.class AND s.login = charge.login) THEN
      RETURN false;
    END IF;
    INSERT INTO shares (class, login, vtime, at)
      VALUES (charge.class, charge.login, least_active(class, login), clock_timestamp())
      ON CONFLICT DO NOTHING RETURNING * INTO share;
    IF share.class IS NULL THEN
      RETURN false;
    END IF;
  END IF;
  SELECT l.weight INTO weight FROM logins l WHERE l.login = charge.login;
  UPDATE shares s
    SET vtime = faded(s.vtime, s.at) + charge.seconds / coalesce(weight, 1),
        urgent = faded(s.urgent, s.at) + charge.urgent, at = clock_timestamp()
    WHERE s.class = charge.class AND s.login = charge.login;
  RETURN true;
END $$;

-- Says that a line has a ready job with this `seq`. It waits for tick(), which may be raising
-- `low`.
CREATE FUNCTION stand_in_line(queue bigint, login text, seq bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE lines l SET low = least(l.low, stand_in_line.seq), idle = false
  WHERE l.queue = stand_in_line.queue AND l.login = stand_in_line.login;
END $$;

-- Where workers whose devices can take such jobs LISTEN; an empty class: whatever it is. A name
-- tells nothing to who does not know pool and class.
CREATE FUNCTION channel_of(pool text, class text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT 'fleet_' || md5(jsonb_build_array(channel_of.pool, channel_of.class)::text)
$$;

-- Where the submitter of urgent jobs may LISTEN for their end: `fleet_` and the id of the run.
CREATE FUNCTION channel_of(run uuid) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT 'fleet_' || run
$$;

-- Tells those who listen that a queue has work: ten times a second at most, since NOTIFY takes a
-- lock of the whole server until the transaction has ended. Who was not told finds it by asking.
CREATE FUNCTION tell(q queues) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM queues v
    WHERE v.id = (q).id AND abs(extract(epoch FROM clock_timestamp() - v.notified)) > 0.1
    FOR NO KEY UPDATE SKIP LOCKED;
  IF FOUND THEN
    UPDATE queues v SET notified = clock_timestamp() WHERE v.id = (q).id;
    PERFORM pg_notify(channel_of((q).pool, (q).class), '');
  END IF;
END $$;

-- Moves a job, whose row the caller has locked, to `ended`. Jobs of its run that wait for it are
-- looked at: those with nothing left to wait for are ready, those that waited for what failed have
-- failed. A job that was submitted in this very moment is not seen: tick() looks again. Whether the
-- job was the last of its lease.
CREATE FUNCTION end_job(job jobs, how text, reason text, worker uuid DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  waiting jobs;
  followed boolean;
  last boolean;
BEGIN
  -- One statement: each costs a post as much as writing such a row does.
  WITH gone AS (DELETE FROM jobs j WHERE j.id = job.id),
  noted AS (
    INSERT INTO events (at, what, job, token, device, worker, login, note)
      VALUES (clock_timestamp(), 'ended', job.id, job.token, job.device, end_job.worker, job.login,
              how))
  INSERT INTO ended (id, seq, run, login, queue, kind, band, after, limit_s, n, next, losses, state,
                     reason, token, device, worker, ended)
    VALUES (job.id, job.seq, job.run, job.login, job.queue, job.kind, job.band, job.after,
            job.limit_s, job.n, job.next, job.losses, how, left(end_job.reason, 65536), job.token,
            job.device, end_job.worker, clock_timestamp())
    RETURNING
      EXISTS (SELECT FROM jobs j WHERE j.run = job.run AND j.state = 'waiting'
              AND job.id = ANY (j.after)),
      NOT EXISTS (SELECT FROM jobs j WHERE j.device = job.device AND j.token = job.token
                  AND j.state = 'leased' AND j.id <> job.id)
    INTO followed, last;
  IF job.losses > 0 THEN
    DELETE FROM suspects s WHERE s.job = (end_job.job).id;
  END IF;
  IF job.band = 0 THEN  -- somebody sits and waits; there are few of these
    PERFORM pg_notify(channel_of(job.run), '');
  END IF;
  IF followed THEN
    FOR waiting IN
      SELECT * FROM jobs j
      WHERE j.run = (end_job.job).run AND j.state = 'waiting' AND (end_job.job).id = ANY (j.after)
      ORDER BY j.id FOR UPDATE
    LOOP
      PERFORM wake(waiting);
    END LOOP;
  END IF;
  RETURN last;
END $$;

-- Looks at a job that waits, whose row is locked: whether what it waits for is over.
CREATE FUNCTION wake(waiting jobs) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  bad ended;
BEGIN
  IF NOT EXISTS (SELECT FROM jobs WHERE id = waiting.id) THEN
    RETURN;  -- failed with another one, just now
  END IF;
  SELECT * INTO bad FROM ended e WHERE e.id = ANY (waiting.after) AND e.state <> 'done' LIMIT 1;
  IF bad.id IS NOT NULL THEN
    PERFORM end_job(waiting, CASE bad.state WHEN 'cancelled' THEN 'cancelled' ELSE 'failed' END,
                    left(format('job %s, which it needs, is %s: %s', bad.id, bad.state, bad.reason),
                         4096));
  ELSIF NOT EXISTS (SELECT FROM jobs j WHERE j.id = ANY (waiting.after)) THEN
    UPDATE jobs SET state = 'ready', ready_at = clock_timestamp() WHERE id = waiting.id;
    PERFORM stand_in_line(waiting.queue, waiting.login, waiting.seq);
    PERFORM tell(q) FROM queues q WHERE q.id = waiting.queue;
  END IF;
END $$;

-- Whether the clock was not set since a lease was renewed: else the renewal seems to lie in the
-- future, or further back than a lease lasts.
CREATE FUNCTION same_clock(renewed timestamptz, now timestamptz, lease_s double precision)
RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT now - renewed BETWEEN interval '0' AND (lease_s + 5) * interval '1 s'
$$;

-- When a lease began, by the clock that says `now`.
CREATE FUNCTION began(d devices, now timestamptz, lease_s double precision) RETURNS timestamptz
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN same_clock(d.renewed, now, lease_s) THEN d.since
              ELSE now - (d.renewed - d.since) END
$$;

-- Seconds that a lease lasted until now. What came after the last renewal is not counted where the
-- clock was set after it.
CREATE FUNCTION lasted(d devices, now timestamptz, lease_s double precision)
RETURNS double precision LANGUAGE sql STABLE AS $$
  SELECT greatest(0, extract(epoch FROM
    CASE WHEN same_clock(d.renewed, now, lease_s) THEN least(now, d.ends) ELSE d.renewed END
    - d.since))::double precision
$$;

-- Tokens rise; those of a later epoch are above all of an earlier one.
CREATE FUNCTION next_token(epoch bigint) RETURNS bigint LANGUAGE sql AS $$
  SELECT (epoch << 40) + nextval('tokens')
$$;

-- The lease of a device, whose row the caller has locked, is over: `how` is done, given, left,
-- lost, void, doubted. Its jobs, if any are left, are ready at their old place, or over if their run
-- was cancelled.
CREATE FUNCTION end_lease(d devices, how text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  job jobs;
  gone boolean;
  first boolean := true;
BEGIN
  FOR job IN
    SELECT * FROM jobs j WHERE j.device = d.id AND j.token = d.token AND j.state = 'leased'
    ORDER BY j.place FOR UPDATE
  LOOP
    SELECT r.cancelled IS NOT NULL INTO gone FROM runs r WHERE r.id = job.run;
    IF gone THEN
      PERFORM end_job(job, 'cancelled', 'its run was cancelled', d.worker);
    ELSIF how <> 'lost' OR NOT first OR NOT lose_item(job, d) THEN
      UPDATE jobs SET state = 'ready', token = NULL, device = NULL, place = NULL WHERE id = job.id;
      PERFORM stand_in_line(job.queue, job.login, job.seq);
      PERFORM note('returned', job.id, d.token, d.id, d.worker, job.login, NULL, how);
    END IF;
    first := false;
  END LOOP;
  PERFORM free_device(d, how);
END $$;

-- The same of a lease that has no jobs any more.
CREATE FUNCTION free_device(d devices, how text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  doubtful boolean := how = 'lost' AND d.losses >= 4;
  seconds double precision;
  paid boolean;
BEGIN
  SELECT lasted(d, t.now, m.lease_s) INTO seconds
  FROM meta m, (SELECT clock_timestamp() AS now) t;
  -- tick() ends many leases at once: it does not collect locks on shares meanwhile.
  paid := how IN ('done', 'given') AND charge(d.class, d.login, seconds,
                                              CASE WHEN d.urgent THEN seconds ELSE 0 END, true);
  WITH used AS (
    INSERT INTO usage (token, at, class, login, seconds, urgent, folded)
      VALUES (d.token, clock_timestamp(), d.class, d.login, seconds, d.urgent, paid)),
  noted AS (
    INSERT INTO events (at, what, token, device, worker, login, seconds, note)
      VALUES (clock_timestamp(), 'freed', d.token, d.id, d.worker, d.login, seconds, how))
  UPDATE devices v SET
      state = CASE WHEN doubtful THEN 'suspect'
                   WHEN how = 'done' OR reached(d.id) THEN 'free'  -- who posts has not left
                   ELSE 'off' END,
      reason = CASE WHEN doubtful THEN '5 leases in a row were lost' ELSE '' END,
      losses = CASE how WHEN 'lost' THEN d.losses + 1 WHEN 'done' THEN 0 ELSE v.losses END,
      token = NULL, worker = NULL, login = NULL, since = NULL, renewed = NULL, ends = NULL
    WHERE v.id = d.id;
  IF doubtful THEN
    PERFORM note('suspect', NULL, NULL, d.id, NULL, NULL);
  END IF;
END $$;

-- The job ran when its lease was lost: its next item is a suspect. After three such leases, on two
-- devices where there are two, the item counts as measured, with the outcome `lost`. True: the job
-- is over with that.
CREATE FUNCTION lose_item(job jobs, d devices) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  leases int;
  places int;
BEGIN
  UPDATE jobs SET losses = losses + 1 WHERE id = job.id RETURNING * INTO job;
  INSERT INTO suspects (job, item, device, token, at)
    VALUES (job.id, job.next, d.id, d.token, clock_timestamp());
  SELECT count(*), count(DISTINCT s.device) INTO leases, places FROM suspects s
  WHERE s.job = (lose_item.job).id AND s.item = (lose_item.job).next;
  PERFORM note('loss', job.id, d.token, d.id, d.worker, job.login, NULL, 'item ' || job.next);
  IF leases < 3 OR (places < 2 AND others_serve(job.queue, d.id)) THEN
    RETURN false;
  END IF;
  IF job.n = 0 THEN
    PERFORM end_job(job, 'dead', format('%s workers ended while it ran', leases));
    RETURN true;
  END IF;
  INSERT INTO results (job, item, token, outcome, reason, at)
    VALUES (job.id, job.next, d.token, 'lost', format('%s workers ended while it ran', leases),
            clock_timestamp());
  UPDATE jobs SET next = next + 1 WHERE id = job.id RETURNING * INTO job;
  PERFORM note('gave_up', job.id, d.token, d.id, d.worker, job.login, NULL,
               format('item %s', job.next - 1));
  IF job.next < job.n THEN
    RETURN false;
  END IF;
  PERFORM end_job(job, 'done', '');  -- no worker ended it: a post that comes now is stale
  RETURN true;
END $$;

-- Whether the queue has another device that works.
CREATE FUNCTION others_serve(queue bigint, device bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT EXISTS (SELECT FROM serves s JOIN devices d ON d.id = s.device
                   WHERE s.queue = others_serve.queue AND d.id <> others_serve.device
                     AND d.state IN ('free', 'leased')));
END $$;

-- Whether a device may run the next item of a job: not if it lost the lease over it twice, and
-- there is another device to tell whose fault that was.
CREATE FUNCTION may_try(job uuid, item int, queue bigint, device bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT (SELECT count(*) FROM suspects s
            WHERE s.job = may_try.job AND s.item = may_try.item AND s.device = may_try.device) < 2
        OR NOT others_serve(queue, device));
END $$;
