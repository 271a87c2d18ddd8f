-- What the owner of the fleet does: logins, pools, devices in trouble, removing what is old.

SET LOCAL search_path = fleet, pg_temp;

-- Adds a login or changes it; a null leaves a value as it is. The role must exist. It becomes a
-- member of the group of its kind, and statements of it get limits. errors: TW400, TW403, TW404.
CREATE FUNCTION login_set(login text, kind text, weight double precision DEFAULT NULL,
                          max_ready int DEFAULT NULL, blob_bytes bigint DEFAULT NULL,
                          off boolean DEFAULT NULL)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
#variable_conflict use_column
DECLARE
  other text;
BEGIN
  PERFORM require_owner();
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = login_set.login) THEN
    PERFORM refuse('TW404', format('PostgreSQL has no login %s', login), '',
                   format('as an administrator: CREATE ROLE %I LOGIN PASSWORD ''...''', login));
  END IF;
  INSERT INTO logins AS l (login, kind) VALUES (login_set.login, coalesce(login_set.kind, 'user'))
    ON CONFLICT DO NOTHING;
  UPDATE logins l SET
      kind = coalesce(login_set.kind, l.kind), weight = coalesce(login_set.weight, l.weight),
      max_ready = coalesce(login_set.max_ready, l.max_ready),
      blob_bytes = coalesce(login_set.blob_bytes, l.blob_bytes),
      off = coalesce(login_set.off, l.off)
    WHERE l.login = login_set.login;
  PERFORM note('login', NULL, NULL, NULL, NULL, login);
  IF pg_has_role(login_set.login, current_user, 'MEMBER') THEN
    RETURN;  -- an owner, who may do all anyway
  END IF;
  SELECT l.kind INTO kind FROM logins l WHERE l.login = login_set.login;
  FOREACH other IN ARRAY ARRAY['user', 'worker', 'monitor'] LOOP
    IF other = login_set.kind THEN
      EXECUTE format('GRANT %I TO %I', 'tw_' || other, login);
    ELSIF pg_has_role(login_set.login, 'tw_' || other, 'MEMBER') THEN
      EXECUTE format('REVOKE %I FROM %I', 'tw_' || other, login);
    END IF;
  END LOOP;
  EXECUTE format('ALTER ROLE %I IN DATABASE %I SET statement_timeout = ''30s''', login,
                 current_database());
  EXECUTE format('ALTER ROLE %I IN DATABASE %I SET idle_in_transaction_session_timeout = ''15s''',
                 login, current_database());
  EXECUTE format('ALTER ROLE %I IN DATABASE %I SET lock_timeout = ''5s''', login,
                 current_database());
EXCEPTION
  WHEN check_violation THEN
    PERFORM refuse('TW400', 'a value of the login is out of range', SQLERRM);
  WHEN insufficient_privilege THEN
    PERFORM refuse('TW403', format('%s may not grant roles to %s', current_user, login), SQLERRM,
                   'as an administrator with CREATEROLE: GRANT tw_user (tw_worker, tw_monitor) TO it');
END $$;

-- Adds a pool or changes it. errors: TW400, TW403.
CREATE FUNCTION pool_set(pool text, max_seconds double precision DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  PERFORM require_owner();
  INSERT INTO pools (pool) VALUES (pool_set.pool) ON CONFLICT DO NOTHING;
  UPDATE pools p SET max_seconds = coalesce(pool_set.max_seconds, p.max_seconds)
    WHERE p.pool = pool_set.pool;
EXCEPTION
  WHEN check_violation OR not_null_violation THEN
    PERFORM refuse('TW400', 'a pool has a name, and a limit above 0 s', SQLERRM);
END $$;

-- Lets a login submit to a pool or serve in it, with devices whose class matches (`cpu:*`); a null
-- pattern takes that away. errors: TW400, TW403, TW404.
CREATE FUNCTION member_set(pool text, login text, may text, target_pattern text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  PERFORM require_owner();
  IF may IS NULL OR may NOT IN ('submit', 'serve') THEN
    PERFORM refuse('TW400', format('a login may submit or serve, not %s', may));
  END IF;
  IF target_pattern IS NULL THEN
    DELETE FROM members m WHERE m.pool = member_set.pool AND m.login = member_set.login
      AND m.may = member_set.may;
  ELSE
    INSERT INTO members (pool, login, may, target)
      VALUES (member_set.pool, member_set.login, member_set.may, target_pattern)
      ON CONFLICT (pool, login, may) DO UPDATE SET target = excluded.target;
  END IF;
EXCEPTION
  WHEN foreign_key_violation THEN
    PERFORM refuse('TW404', format('there is no pool %s or no login %s', pool, login), SQLERRM,
                   'tilewright fleet pool, tilewright fleet login');
END $$;

-- The device of this name, locked. errors: TW404, with the nearest name.
CREATE FUNCTION named_device(name text) RETURNS devices LANGUAGE plpgsql AS $$
DECLARE
  d devices;
BEGIN
  SELECT * INTO d FROM devices v WHERE v.name = named_device.name FOR NO KEY UPDATE;
  IF d.id IS NULL THEN
    PERFORM refuse('TW404', format('there is no device %s', name), '',
                   coalesce((SELECT 'there are ' || string_agg(v.name, ', ' ORDER BY v.name)
                             FROM (SELECT x.name FROM devices x ORDER BY x.name LIMIT 10) v), ''));
  END IF;
  RETURN d;
END $$;

-- Keeps a device for jobs of the caller, from the end of its lease on. A user who may submit to its
-- pool holds it for as long as a job may take there; the owner as long as it likes. Whom it is held
-- for, and until when. errors: TW400, TW403, TW404, TW409 (somebody else holds it).
CREATE FUNCTION hold(device text, seconds double precision) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user');
  d devices := named_device(device);
  most double precision;
BEGIN
  SELECT CASE WHEN is_owner() THEN 7 * 86400 ELSE p.max_seconds END INTO most
  FROM pools p WHERE p.pool = d.pool;
  IF NOT may(me, d.pool, 'submit', d.class) THEN
    PERFORM refuse('TW403', format('%s may not use the device %s', me, device));
  ELSIF seconds IS NULL OR NOT (seconds > 0 AND seconds <= most) THEN
    PERFORM refuse('TW400', format('%s cannot be held for %s s', device, seconds),
                   format('more than 0 and at most %s s', most));
  ELSIF d.held_by <> me THEN
    PERFORM refuse('TW409', format('%s holds the device %s', d.held_by, device),
                   format('until %s', to_char(d.held_until AT TIME ZONE 'UTC', 'HH24:MI:SS UTC')));
  END IF;
  UPDATE devices v SET held_by = me, held_until = clock_timestamp() + seconds * interval '1 s'
    WHERE v.id = d.id RETURNING * INTO d;
  PERFORM note('held', NULL, NULL, d.id, NULL, me, seconds);
  RETURN jsonb_build_object('held_by', d.held_by, 'until', d.held_until);
END $$;

-- errors: TW403, TW404.
CREATE FUNCTION release_hold(device text) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user');
  d devices := named_device(device);
BEGIN
  IF d.held_by <> me AND NOT is_owner() THEN
    PERFORM refuse('TW403', format('%s holds the device %s', d.held_by, device));
  END IF;
  UPDATE devices v SET held_by = NULL, held_until = NULL WHERE v.id = d.id;
  PERFORM note('released', NULL, NULL, d.id, NULL, me);
END $$;

-- Tells a worker to leave: it gets no more jobs, and hears of it at its next call.
-- errors: TW403, TW404.
CREATE FUNCTION drain(worker uuid) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  PERFORM require_owner();
  UPDATE workers w SET state = 'draining', reason = 'told to leave'
    WHERE w.id = worker AND w.state = 'up';
  IF NOT FOUND AND NOT EXISTS (SELECT FROM workers w WHERE w.id = worker) THEN
    PERFORM refuse('TW404', format('there is no worker %s', worker));
  END IF;
END $$;

-- Trusts a suspect device again, from now on: what it has measured is compared with nothing any
-- more. errors: TW403, TW404.
CREATE FUNCTION clear_device(name text) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  d devices;
BEGIN
  PERFORM require_owner();
  d := named_device(name);
  DELETE FROM pairs p WHERE d.id IN (p.device, p.other);
  UPDATE devices v SET losses = 0, reason = '',
      sound_from = CASE v.state WHEN 'suspect' THEN next_token(m.epoch) ELSE v.sound_from END,
      state = CASE WHEN v.state <> 'suspect' THEN v.state
                   WHEN reached(v.id) THEN 'free' ELSE 'off' END
    FROM meta m WHERE v.id = d.id;
  PERFORM note('cleared', NULL, NULL, d.id, NULL, session_user::text);
END $$;

-- Removes what is old, a slice of each kind at a call; the numbers removed. Call it until all are
-- 0, once a day. errors: TW403.
CREATE FUNCTION gc() RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  now timestamptz := clock_timestamp();
  counts jsonb := '{}';
  n int;
BEGIN
  PERFORM require_owner();
  DELETE FROM results WHERE (job, item) IN (
    SELECT r.job, r.item FROM results r
    WHERE r.at < now - interval '7 days' AND NOT EXISTS (SELECT FROM jobs j WHERE j.id = r.job)
    LIMIT 10000);
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('results', n);
  DELETE FROM late WHERE id IN (SELECT id FROM late WHERE at < now - interval '7 days' LIMIT 10000);
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('late', n);
  DELETE FROM ended WHERE id IN (
    SELECT id FROM ended WHERE ended < now - interval '30 days' LIMIT 10000);
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('ended', n);
  DELETE FROM events WHERE seq IN (
    SELECT seq FROM events WHERE at < now - interval '30 days' LIMIT 10000);
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('events', n);
  DELETE FROM usage WHERE token IN (
    SELECT token FROM usage WHERE at < now - interval '30 days' AND folded LIMIT 10000);
  GET DIAGNOSTICS n = ROW_COUNT;
  counts := counts || jsonb_build_object('usage', n);
  RETURN counts || jsonb_build_object('blobs', gc_blobs(now), 'records', gc_records(now),
    'runs', gc_runs(now), 'workers', gc_workers(now), 'queues', gc_queues(now));
END $$;

-- Blobs that no job has named for 14 days.
CREATE FUNCTION gc_blobs(now timestamptz) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  b blobs;
  count int := 0;
BEGIN
  FOR b IN
    SELECT * FROM blobs v WHERE v.used < now - interval '14 days'
      AND NOT EXISTS (SELECT FROM job_blobs n JOIN jobs j ON j.id = n.job
                      WHERE n.login = v.login AND n.sha256 = v.sha256)
      AND NOT EXISTS (SELECT FROM job_blobs n JOIN ended e ON e.id = n.job
                      WHERE n.login = v.login AND n.sha256 = v.sha256
                        AND e.ended > now - interval '14 days')
    LIMIT 100 FOR UPDATE SKIP LOCKED
  LOOP
    -- Locked now: no submit can name it any more, unless one just has.
    CONTINUE WHEN EXISTS (SELECT FROM job_blobs n JOIN jobs j ON j.id = n.job
                          WHERE n.login = b.login AND n.sha256 = b.sha256);
    DELETE FROM job_blobs n WHERE n.login = b.login AND n.sha256 = b.sha256;
    DELETE FROM blobs v WHERE v.login = b.login AND v.sha256 = b.sha256;
    count := count + 1;
  END LOOP;
  RETURN count;
END $$;

-- Of records older than half a year, the 50 cheapest per login, workload, target and compiler stay,
-- and those that decide.
CREATE FUNCTION gc_records(now timestamptz) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  count int;
BEGIN
  DELETE FROM records WHERE id IN (
    SELECT o.id FROM records o
    WHERE o.made < now - interval '6 months' AND o.kind NOT IN ('race', 'rule', 'algorithm')
      AND (NOT plausible(o.outcome, o.cost) OR 50 <= (
        SELECT count(*) FROM (
          SELECT FROM records c
          WHERE c.workload = o.workload AND c.target = o.target AND c.outcome = 'ok'
            AND c.cost < o.cost AND c.cost >= 0.001 AND c.compiler = o.compiler
            AND c.login = o.login
          LIMIT 50) cheaper))
    LIMIT 1000);
  GET DIAGNOSTICS count = ROW_COUNT;
  RETURN count;
END $$;

CREATE FUNCTION gc_runs(now timestamptz) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  count int;
BEGIN
  DELETE FROM runs WHERE id IN (
    SELECT r.id FROM runs r
    WHERE r.seen < now - interval '30 days' AND NOT EXISTS (SELECT FROM jobs j WHERE j.run = r.id)
      AND NOT EXISTS (SELECT FROM ended e WHERE e.run = r.id)
    LIMIT 1000 FOR UPDATE SKIP LOCKED);
  GET DIAGNOSTICS count = ROW_COUNT;
  RETURN count;
END $$;

-- Workers that nobody has heard of for a day are gone, those of 30 days are forgotten.
CREATE FUNCTION gc_workers(now timestamptz) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  count int;
BEGIN
  UPDATE workers SET state = 'gone', reason = 'not seen for a day'
    WHERE state <> 'gone' AND seen < now - interval '1 day'
      AND NOT EXISTS (SELECT FROM devices d WHERE d.worker = workers.id);
  UPDATE devices d SET state = 'off', reason = 'its worker was not seen for a day'
    WHERE d.state = 'free' AND NOT reached(d.id);
  DELETE FROM workers w WHERE w.state = 'gone' AND w.seen < now - interval '30 days';
  GET DIAGNOSTICS count = ROW_COUNT;
  RETURN count;
END $$;

-- Queues that nobody has used for 30 days. submit() keeps a lock on those that it uses.
CREATE FUNCTION gc_queues(now timestamptz) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  q queues;
  count int := 0;
BEGIN
  FOR q IN
    SELECT * FROM queues v WHERE v.used < now - interval '30 days'
      AND NOT EXISTS (SELECT FROM lines l WHERE l.queue = v.id AND NOT l.idle)
    ORDER BY v.id LIMIT 1000 FOR UPDATE SKIP LOCKED
  LOOP
    CONTINUE WHEN EXISTS (SELECT FROM jobs j WHERE j.queue = q.id);
    DELETE FROM queues v WHERE v.id = q.id;
    count := count + 1;
  END LOOP;
  RETURN count;
END $$;
