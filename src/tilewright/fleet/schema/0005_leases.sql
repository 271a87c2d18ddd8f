-- What workers call around their work: enroll, claim, renew, give_back, leave.
--
-- A lease is device + token. claim() draws a token for a device and up to 8 jobs of one login and
-- one queue. Whoever shows the token of the device has the lease, whatever the clock says: only
-- tick() compares times.

SET LOCAL search_path = fleet, pg_temp;

-- errors: TW400, TW403 of a device that a worker brings along.
CREATE FUNCTION check_device(g jsonb, pool text, me text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  field text;
BEGIN
  FOREACH field IN ARRAY ARRAY['key', 'name', 'class', 'target'] LOOP
    IF coalesce(g->>field, '') = '' OR length(g->>field) > 256 THEN
      PERFORM refuse('TW400', format('a device needs a %s of 1 to 256 characters', field));
    END IF;
  END LOOP;
  IF length(g::text) > 65536 OR jsonb_typeof(list(g->'tags')) <> 'array'
     OR jsonb_array_length(list(g->'tags')) > 64 THEN
    PERFORM refuse('TW400', format('the description of device %s is too large', g->>'name'),
                   'at most 64 tags, 64 KiB');
  END IF;
  IF NOT may(me, pool, 'serve', g->>'class') THEN
    PERFORM refuse('TW403', format('%s may not serve the pool %s with %s', me, pool, g->>'class'),
                   '', format('its owner allows it: tilewright fleet grant %s --pool %s --serve', me,
                              pool));
  END IF;
END $$;

-- Registers a device or finds it again by its key; the pool is locked. Who serves a board of
-- another pool must be trusted there, too.
CREATE FUNCTION add_device(g jsonb, pool text, me text) RETURNS devices LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  d devices;
  of_class text;
  given_tags text[] :=
    ARRAY(SELECT DISTINCT v FROM jsonb_array_elements_text(list(g->'tags')) v ORDER BY v);
  free_name text := g->>'name';
BEGIN
  INSERT INTO classes (class, target, facts, rates)
    VALUES (g->>'class', g->>'target', coalesce(g->'facts', '{}'), coalesce(g->'rates', '{}'))
    ON CONFLICT DO NOTHING;
  SELECT target INTO of_class FROM classes WHERE class = g->>'class';
  IF of_class <> g->>'target' THEN
    PERFORM refuse('TW409', format('the class %s has the target %s', g->>'class', of_class),
                   format('device %s says %s', g->>'name', g->>'target'));
  END IF;
  SELECT * INTO d FROM devices WHERE key = g->>'key' FOR NO KEY UPDATE;
  IF d.id IS NOT NULL THEN
    IF d.pool <> add_device.pool AND NOT may(me, d.pool, 'serve', d.class) THEN
      PERFORM refuse('TW403', format('the device %s belongs to another pool', d.key));
    END IF;
    IF d.state = 'leased' AND (d.target, d.class, d.pool) <>
       (g->>'target', g->>'class', add_device.pool) THEN
      PERFORM refuse('TW409', format('the device %s is at work as %s of the class %s', d.key,
                                     d.target, d.class),
                     'it cannot become another one meanwhile', 'try again when its lease is over');
    END IF;
    free_name := CASE WHEN g->>'name' = regexp_replace(d.name, '-[0-9]+$', '') THEN d.name
                      ELSE g->>'name' END;
  END IF;
  FOR i IN 2 .. 10000 LOOP
    EXIT WHEN NOT EXISTS (SELECT FROM devices WHERE name = free_name AND key <> g->>'key');
    free_name := format('%s-%s', g->>'name', i);
  END LOOP;
  INSERT INTO devices (key, pool, name, class, target, tags, emulated)
    VALUES (g->>'key', add_device.pool, free_name, g->>'class', g->>'target', given_tags,
            coalesce((g->>'emulated')::boolean, false))
    ON CONFLICT (key) DO UPDATE
      SET pool = excluded.pool, name = excluded.name, class = excluded.class,
          target = excluded.target, tags = excluded.tags, emulated = excluded.emulated,
          state = CASE devices.state WHEN 'off' THEN 'free' ELSE devices.state END,
          reason = CASE devices.state WHEN 'off' THEN '' ELSE devices.reason END
    RETURNING * INTO d;
  DELETE FROM serves WHERE device = d.id;
  INSERT INTO serves (device, queue)
    SELECT d.id, q.id FROM queues q WHERE q.pool = d.pool AND fits(d, q);
  RETURN d;
END $$;

-- A worker begins, with its devices: [{key, name, class, target, tags, emulated, facts, rates}].
-- The answer has its id, its secret, and the devices in the order given; a name that another device
-- has gets a number. `listen`: names for LISTEN, where one is told of new jobs for the device.
-- errors: TW400, TW403, TW404, TW409.
CREATE FUNCTION enroll(host text, program text, compiler text, sandbox text, pool text,
                       devices jsonb)
RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
#variable_conflict use_variable
DECLARE
  me text := caller('worker');
  worker uuid := gen_random_uuid();
  secret text := replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '');
  made jsonb := '[]';
  g jsonb;
  d devices;
BEGIN
  PERFORM durably();
  PERFORM FROM pools p WHERE p.pool = enroll.pool FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('TW404', format('there is no pool %s', pool), '',
                   'its owner makes it: tilewright fleet pool ' || pool);
  END IF;
  IF jsonb_typeof(devices) IS DISTINCT FROM 'array' OR jsonb_array_length(devices) > 256 THEN
    PERFORM refuse('TW400', 'devices are a list of at most 256');
  END IF;
  INSERT INTO workers (id, login, host, secret_sha256, program, compiler, sandbox, seen)
    VALUES (worker, me, left(host, 256), sha256(convert_to(secret, 'UTF8')), left(program, 256),
            left(compiler, 256), left(sandbox, 256), clock_timestamp());
  BEGIN
    FOR g IN SELECT e FROM jsonb_array_elements(devices) e ORDER BY e->>'key' LOOP
      PERFORM check_device(g, pool, me);
      d := add_device(g, pool, me);
      INSERT INTO reaches (worker, device) VALUES (worker, d.id) ON CONFLICT DO NOTHING;
    END LOOP;
  EXCEPTION
    WHEN data_exception THEN
      PERFORM refuse('TW400', 'the devices are not what they should be', SQLERRM);
  END;
  SELECT coalesce(jsonb_agg(jsonb_build_object('id', f.id, 'key', f.key, 'name', f.name, 'listen',
                              jsonb_build_array(channel_of(f.pool, f.class),
                                                channel_of(f.pool, '')))
                            ORDER BY e.ordinality), '[]') INTO made
  FROM jsonb_array_elements(devices) WITH ORDINALITY AS e (j, ordinality)
  JOIN devices f ON f.key = e.j->>'key';
  PERFORM note('enrolled', NULL, NULL, NULL, worker, me, NULL, left(host, 256));
  RETURN jsonb_build_object('worker', worker, 'secret', secret, 'devices', made);
END $$;

-- The lines that a device may take from, best first. A line's head is its oldest ready job of a
-- band. It rises a band for each minute in which its login got nothing of the class: who has many
-- jobs waiting has old ones, and would go before all others for ever. An urgent one does not count as urgent while its
-- login has another that runs, or has had a tenth of a device-hour for such. In a band the login
-- with the least virtual time goes first, then its urgent job, then the oldest.
CREATE FUNCTION lines_for(d devices, compiler text)
RETURNS TABLE (queue bigint, login text, band smallint, low bigint, head timestamptz)
LANGUAGE sql STABLE AS $$
  SELECT l.queue, l.login, b.band, l.low, j.ready_at
  FROM serves s
  JOIN queues q ON q.id = s.queue AND q.compiler IN ('', lines_for.compiler)
  JOIN lines l ON l.queue = s.queue AND NOT l.idle
  CROSS JOIN (VALUES (0::smallint), (1::smallint), (2::smallint)) b (band)
  CROSS JOIN LATERAL (
    SELECT r.seq, r.ready_at FROM jobs r
    WHERE r.queue = l.queue AND r.band = b.band AND r.login = l.login AND r.state = 'ready'
      AND r.seq >= l.low
    ORDER BY r.seq LIMIT 1) j
  LEFT JOIN shares h ON h.class = (d).class AND h.login = l.login
  WHERE s.device = (d).id AND ((d).held_by IS NULL OR (d).held_by = l.login)
  ORDER BY greatest(0, b.band - greatest(0, floor(
             extract(epoch FROM statement_timestamp() - greatest(j.ready_at, h.at)) / 60)))
             + CASE WHEN b.band = 0 AND (
                      faded(h.urgent, h.at) > 360
                      OR EXISTS (SELECT FROM jobs u WHERE u.login = l.login AND u.state = 'leased'
                                 AND u.band = 0)) THEN 1 ELSE 0 END,
           coalesce(faded(h.vtime, h.at), 0), b.band <> 0, j.seq
$$;

-- Jobs out of a line, locked, in their order: the device gets them if there are any. First those of a
-- task that it has loaded, unless the oldest one has waited long.
CREATE FUNCTION pick(l record, d devices, most int, warm text[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
  near uuid[];
  ids uuid[];
  gone uuid[];
BEGIN
  IF cardinality(warm) > 0 AND clock_timestamp() - l.head < interval '30 s' THEN
    SELECT array_agg(w.id) INTO near FROM (
      SELECT j.id, j.key FROM jobs j
      WHERE j.queue = l.queue AND j.band = l.band AND j.login = l.login AND j.state = 'ready'
        AND j.seq >= l.low
      ORDER BY j.seq LIMIT 64) w
    WHERE w.key = ANY (warm);
  END IF;
  IF near IS NOT NULL THEN
    SELECT array_agg(p.id) FILTER (WHERE NOT p.gone), array_agg(p.id) FILTER (WHERE p.gone)
    INTO ids, gone FROM (
      SELECT j.id, r.cancelled IS NOT NULL AS gone FROM jobs j JOIN runs r ON r.id = j.run
      WHERE j.id = ANY (near) AND j.state = 'ready'
        AND (j.losses < 2 OR may_try(j.id, j.next, j.queue, d.id))
      ORDER BY j.seq LIMIT most FOR NO KEY UPDATE OF j SKIP LOCKED) p;
  END IF;
  IF ids IS NULL AND gone IS NULL THEN
    SELECT array_agg(p.id) FILTER (WHERE NOT p.gone), array_agg(p.id) FILTER (WHERE p.gone)
    INTO ids, gone FROM (
      SELECT j.id, r.cancelled IS NOT NULL AS gone FROM jobs j JOIN runs r ON r.id = j.run
      WHERE j.queue = l.queue AND j.band = l.band AND j.login = l.login AND j.state = 'ready'
        AND j.seq >= l.low AND (j.losses < 2 OR may_try(j.id, j.next, j.queue, d.id))
      ORDER BY j.seq LIMIT most FOR NO KEY UPDATE OF j SKIP LOCKED) p;
  END IF;
  IF gone IS NOT NULL THEN  -- they came back just while their run was cancelled
    PERFORM end_job(j, 'cancelled', 'its run was cancelled') FROM jobs j
    WHERE j.id = ANY (gone) ORDER BY j.seq;
  END IF;
  RETURN ids;
END $$;

-- A worker asks for work for a device whose lease it has: the first answer was lost. It gets the
-- same lease again, without what was cancelled; null: nothing is left of it, and the device is
-- free. Who asks a fourth time can do nothing with it: the lease may end by time, as a loss.
CREATE FUNCTION claim_again(d devices) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
  job jobs;
BEGIN
  FOR job IN
    SELECT j.* FROM jobs j JOIN runs r ON r.id = j.run
    WHERE j.device = d.id AND j.token = d.token AND j.state = 'leased' AND r.cancelled IS NOT NULL
    ORDER BY j.place FOR UPDATE OF j
  LOOP
    PERFORM end_job(job, 'cancelled', 'its run was cancelled', d.worker);
  END LOOP;
  IF NOT EXISTS (SELECT FROM jobs j
                 WHERE j.device = d.id AND j.token = d.token AND j.state = 'leased') THEN
    PERFORM end_lease(d, 'given');
    RETURN NULL;
  ELSIF d.asked >= 3 THEN
    RETURN '{}';
  END IF;
  UPDATE devices v SET asked = v.asked + 1 WHERE v.id = d.id;
  PERFORM extend(d.id);
  RETURN lease_of(d.id, d.token, (SELECT lease_s FROM meta));
END $$;

-- Asks for work for a device; null: there is none, or the device is not free. A worker that shall
-- leave gets {"drain": true} instead. `warm`: keys of what the device has loaded.
--
-- Nothing is locked until there is a line with a job: most calls of an idle fleet find none, and a
-- lock would make them wait for the disk. Then the device must still be as it was when the lines
-- were looked for. errors: TW403, TW404.
CREATE FUNCTION claim(worker uuid, secret text, device bigint, most int, warm text[])
RETURNS json LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  w workers := known_worker(worker, secret);
  d devices;
  l record;
  taken uuid[];
  again json;
  drawn bigint;
  lease_s double precision;
  now timestamptz;
BEGIN
  SELECT v.* INTO d FROM devices v JOIN reaches r ON r.device = v.id
  WHERE v.id = claim.device AND r.worker = w.id;
  IF d.id IS NULL THEN
    PERFORM refuse('TW404', format('the worker does not reach a device %s', device));
  ELSIF d.worker = w.id THEN
    SELECT v.* INTO d FROM devices v CROSS JOIN meta m
    WHERE v.id = claim.device AND m.timeline = timeline() FOR NO KEY UPDATE OF v SKIP LOCKED;
    IF d.id IS NULL THEN
      RETURN NULL;
    ELSIF d.worker = w.id THEN
      again := claim_again(d);
      IF again IS NOT NULL THEN
        RETURN CASE WHEN again::text <> '{}' THEN again END;
      END IF;
      SELECT * INTO d FROM devices v WHERE v.id = claim.device;
    END IF;
  END IF;
  IF w.state <> 'up' THEN
    RETURN json_build_object('drain', true);
  ELSIF d.state <> 'free' THEN
    RETURN NULL;
  END IF;
  FOR l IN SELECT * FROM lines_for(d, w.compiler) LOOP
    IF drawn IS NULL THEN
      SELECT next_token(m.epoch), m.lease_s INTO drawn, lease_s FROM devices v CROSS JOIN meta m
      WHERE v.id = d.id AND v = d AND m.timeline = timeline() FOR NO KEY UPDATE OF v SKIP LOCKED;
      IF drawn IS NULL THEN
        RETURN NULL;
      END IF;
    END IF;
    taken := pick(l, d, CASE l.band WHEN 0 THEN 1 ELSE least(8, greatest(1, coalesce(most, 1))) END,
                  warm);
    EXIT WHEN taken IS NOT NULL;
  END LOOP;
  IF taken IS NULL THEN
    RETURN NULL;
  END IF;
  now := clock_timestamp();  -- by the clock of after all waiting
  WITH its AS (
    UPDATE jobs j SET state = 'leased', token = drawn, device = d.id,
                      place = array_position(taken, j.id)
      WHERE j.id = ANY (taken)),
  noted AS (
    INSERT INTO events (at, what, job, token, device, worker, login)
      SELECT now, 'claimed', j, drawn, d.id, w.id, l.login FROM unnest(taken) j)
  UPDATE devices v SET state = 'leased', token = drawn, worker = w.id, login = l.login,
                       urgent = (l.band = 0), asked = 0, since = now, renewed = now,
                       ends = now + lease_s * interval '1 s'
    WHERE v.id = d.id;
  RETURN lease_of(d.id, drawn, lease_s);
END $$;

-- The lease of a device as claim() gives it: a text, since putting payloads together as jsonb would
-- copy them again and again.
CREATE FUNCTION lease_of(device bigint, token bigint, lease_s double precision) RETURNS json
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT json_build_object('token', lease_of.token, 'seconds', lease_s, 'jobs', (
      SELECT coalesce(json_agg(json_build_object(
          'id', j.id, 'kind', j.kind, 'run', j.run, 'login', j.login, 'payload', j.payload,
          'limit_s', j.limit_s, 'n', j.n, 'next', j.next, 'compiler', q.compiler,
          'signature', j.signature, 'key', j.key, 'blobs', (
            SELECT coalesce(json_agg(json_build_object('sha256', b.sha256, 'name', b.name)
                                     ORDER BY b.name), '[]')
            FROM job_blobs b WHERE b.job = j.id AND NOT b.output)) ORDER BY j.place), '[]')
      FROM jobs j JOIN queues q ON q.id = j.queue
      WHERE j.device = lease_of.device AND j.token = lease_of.token AND j.state = 'leased')));
END $$;

-- Moves the end of a lease, whose device is locked.
CREATE FUNCTION extend(device bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE devices v SET since = began(v, t.now, m.lease_s), renewed = t.now,
                       ends = t.now + m.lease_s * interval '1 s'
  FROM meta m, (SELECT clock_timestamp() AS now) t WHERE v.id = extend.device;
END $$;

-- The device, locked, if the worker has its lease under this token; else a row of nulls.
CREATE FUNCTION leased_under(w workers, device bigint, token bigint) RETURNS devices
LANGUAGE plpgsql AS $$
DECLARE
  d devices;
BEGIN
  -- A device that was waited for is looked at again: its token is the one that it has then.
  -- After a failover, leases hold no more: tick() is about to end them.
  SELECT v.* INTO d FROM devices v CROSS JOIN meta m
  WHERE v.id = leased_under.device AND v.token = leased_under.token AND v.worker = w.id
    AND m.timeline = timeline() FOR NO KEY UPDATE OF v;
  RETURN d;
END $$;

-- What the holder of a lease should know: jobs that were cancelled; whether its worker shall leave;
-- whether an urgent job waits for this device, so that it should give back what it has not begun.
CREATE FUNCTION signs(d devices, w workers) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT jsonb_build_object(
      'cancel', (SELECT coalesce(jsonb_agg(j.id ORDER BY j.place), '[]')
                 FROM jobs j JOIN runs r ON r.id = j.run
                 WHERE j.device = (d).id AND j.token = (d).token AND j.state = 'leased'
                   AND r.cancelled IS NOT NULL),
      'drain', (w).state IS DISTINCT FROM 'up',
      'yield', NOT coalesce((d).urgent, true) AND EXISTS (
        SELECT FROM serves s JOIN queues q ON q.id = s.queue AND q.compiler IN ('', (w).compiler)
        JOIN lines l ON l.queue = s.queue AND NOT l.idle
        JOIN jobs j ON j.queue = s.queue AND j.band = 0 AND j.login = l.login AND j.state = 'ready'
          AND j.seq >= l.low
        WHERE s.device = (d).id
          AND NOT EXISTS (SELECT FROM jobs u WHERE u.login = l.login AND u.state = 'leased'
                          AND u.band = 0))));
END $$;

-- Moves the end of a lease: `ok` false says that it is over, and that its work must stop. An idle
-- worker may ask with token 0, to hear of `drain`. errors: TW403.
CREATE FUNCTION renew(worker uuid, secret text, device bigint, token bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  w workers := known_worker(worker, secret);
  d devices := leased_under(w, device, token);
BEGIN
  IF d.id IS NOT NULL THEN
    PERFORM extend(d.id);
  END IF;
  RETURN jsonb_build_object('ok', d.id IS NOT NULL) || signs(d, w);
END $$;

-- Ends a lease whose jobs, if any are left, shall run elsewhere or later: no loss. errors: TW403.
CREATE FUNCTION give_back(worker uuid, secret text, device bigint, token bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  w workers := known_worker(worker, secret);
  d devices := leased_under(w, device, token);
BEGIN
  IF d.id IS NOT NULL THEN
    PERFORM end_lease(d, 'given');
  END IF;
  RETURN jsonb_build_object('ok', d.id IS NOT NULL, 'drain', w.state <> 'up');
END $$;

-- A worker ends: its leases are given back, and devices that nobody else reaches are off.
-- errors: TW403.
CREATE FUNCTION leave(worker uuid, secret text) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET plan_cache_mode = force_generic_plan SET jit = off AS $$
DECLARE
  w workers := known_worker(worker, secret);
  d devices;
BEGIN
  FOR d IN
    SELECT v.* FROM devices v JOIN reaches r ON r.device = v.id
    WHERE r.worker = w.id ORDER BY v.id FOR NO KEY UPDATE OF v
  LOOP
    DELETE FROM reaches r WHERE r.worker = w.id AND r.device = d.id;
    IF d.worker = w.id THEN
      PERFORM end_lease(d, 'left');
    END IF;
    UPDATE devices v SET state = 'off', reason = format('its worker left at %s',
        to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI UTC'))
      WHERE v.id = d.id AND v.state IN ('free', 'off') AND NOT reached(v.id);
  END LOOP;
  UPDATE workers v SET state = 'gone', reason = 'left' WHERE v.id = w.id;
  PERFORM note('left', NULL, NULL, NULL, w.id, w.login);
END $$;

-- Whether a worker that has not left reaches the device.
CREATE FUNCTION reached(device bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT EXISTS (SELECT FROM reaches r JOIN workers w ON w.id = r.worker
                   WHERE r.device = reached.device AND w.state <> 'gone'));
END $$;
