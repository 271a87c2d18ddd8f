-- What people and programs see: devices, queues, runs, the log, figures for a monitor.
--
-- Views call no functions of this schema: those would run with the rights of who asks.

SET LOCAL search_path = fleet, pg_temp;

-- A device as others see it. A device whose workers are silent is shown as off: nobody serves it.
CREATE FUNCTION device_json(d devices) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT jsonb_build_object(
      'name', (d).name, 'key', (d).key, 'pool', (d).pool, 'class', (d).class, 'target', (d).target,
      'tags', (d).tags, 'emulated', (d).emulated,
      'facts', (SELECT c.facts FROM classes c WHERE c.class = (d).class),
      'state', CASE WHEN (d).state = 'free' AND coalesce(w.silent > 60, true) THEN 'off'
               ELSE (d).state END,
      'reason', CASE WHEN (d).state = 'free' AND w.silent > 60
                     THEN format('its worker was seen %s s ago', round(w.silent))
                ELSE (d).reason END,
      'worker', w.id, 'host', w.host, 'program', w.program, 'compiler', w.compiler,
      'draining', w.state = 'draining', 'seen_s', w.silent, 'login_of_lease', (d).login,
      'ends_s', extract(epoch FROM (d).ends - clock_timestamp()), 'held_by', (d).held_by,
      'held_s', extract(epoch FROM (d).held_until - clock_timestamp()),
      'waiting', (SELECT count(*) FROM serves s
                  JOIN jobs j ON j.queue = s.queue AND j.state = 'ready' WHERE s.device = (d).id))
    FROM (SELECT 1) one LEFT JOIN LATERAL (
      SELECT v.*, greatest(0, extract(epoch FROM clock_timestamp() - v.seen)) AS silent
      FROM reaches r JOIN workers v ON v.id = r.worker
      WHERE r.device = (d).id AND v.state <> 'gone'
      ORDER BY v.id = (d).worker DESC NULLS LAST, v.seen DESC LIMIT 1) w ON true);
END $$;

-- The owner and monitors see what is of all.
CREATE FUNCTION sees_all(login text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT is_owner() OR EXISTS (SELECT FROM logins l
                                 WHERE l.login = sees_all.login AND l.kind = 'monitor'));
END $$;

-- The devices of pools that the caller may use. The owner and monitors see all.
CREATE FUNCTION devices() RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user', 'worker', 'monitor');
  everything boolean := sees_all(me);
BEGIN
  RETURN (SELECT coalesce(jsonb_agg(device_json(d) ORDER BY d.name), '[]') FROM devices d
          WHERE everything
             OR EXISTS (SELECT FROM members m WHERE m.pool = d.pool AND m.login = me));
END $$;

-- Who has a device, who holds it, and who waits for it. errors: TW404.
CREATE FUNCTION who(device text) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user', 'monitor');
  d devices := named_device(device);
BEGIN
  RETURN device_json(d) || jsonb_build_object(
    'since_s', extract(epoch FROM clock_timestamp() - d.since),
    'jobs', (SELECT coalesce(jsonb_agg(jsonb_build_object('id', j.id, 'kind', j.kind, 'run', j.run,
                                       'n', j.n, 'next', j.next) ORDER BY j.place), '[]')
             FROM jobs j WHERE j.device = d.id AND j.token = d.token),
    'line', (SELECT coalesce(jsonb_agg(to_jsonb(l) ORDER BY l.login), '[]') FROM (
               SELECT j.login, count(*) AS ready,
                      round(extract(epoch FROM clock_timestamp() - min(j.ready_at))) AS oldest_s
               FROM serves s JOIN jobs j ON j.queue = s.queue AND j.state = 'ready'
               WHERE s.device = d.id GROUP BY j.login) l));
END $$;

-- Devices, queues, runs (a user sees its own), leases lost and posts that came late in 24 hours.
CREATE FUNCTION status() RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user', 'monitor');
  everything boolean := sees_all(me);
  day timestamptz := clock_timestamp() - interval '1 day';
BEGIN
  RETURN jsonb_build_object(
    'devices', devices(),
    'queues', (SELECT coalesce(jsonb_agg(to_jsonb(c) ORDER BY c.pool, c.class), '[]')
               FROM queue_counts c),
    'runs', (SELECT coalesce(jsonb_agg(to_jsonb(r) ORDER BY r.made), '[]') FROM (
        SELECT r.id, r.login, CASE WHEN r.login = me THEN r.command END AS command, r.made,
               count(*) FILTER (WHERE j.state = 'ready') AS ready,
               count(*) FILTER (WHERE j.state = 'waiting') AS waiting,
               count(*) FILTER (WHERE j.state = 'leased') AS leased,
               r.cancelled IS NOT NULL AS cancelled
        FROM runs r JOIN jobs j ON j.run = r.id
        WHERE everything OR r.login = me GROUP BY r.id) r),
    'lost', (SELECT count(*) FROM events e
             WHERE e.at > day AND e.what = 'freed' AND e.note = 'lost'),
    'late', (SELECT count(*) FROM late l WHERE l.at > day));
END $$;

-- Events after a number, oldest first. Events of one moment may commit in another order: who
-- follows the log asks again from a little before. errors: TW403.
CREATE FUNCTION log(after bigint, most int)
RETURNS TABLE (seq bigint, at timestamptz, what text, job uuid, token bigint, device text,
               worker uuid, login text, seconds double precision, note text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
#variable_conflict use_column
BEGIN
  PERFORM caller('monitor');
  RETURN QUERY
    SELECT e.seq, e.at, e.what, e.job, e.token, d.name, e.worker, e.login, e.seconds, e.note
    FROM events e LEFT JOIN devices d ON d.id = e.device
    WHERE e.seq > log.after ORDER BY e.seq LIMIT least(log.most, 10000);
END $$;

-- The last events, oldest first, as `fleet log` shows them. errors: TW403.
CREATE FUNCTION last_events(most int) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  PERFORM caller('monitor');
  RETURN (SELECT coalesce(jsonb_agg(to_jsonb(l) ORDER BY l.seq), '[]') FROM (
    SELECT e.seq, e.at, e.what, e.job, e.token, d.name AS device, e.worker, e.login, e.note
    FROM events e LEFT JOIN devices d ON d.id = e.device ORDER BY e.seq DESC
    LIMIT least(most, 10000)) l);
END $$;

-- Figures, as Prometheus reads them from a text. errors: TW403.
CREATE FUNCTION metrics() RETURNS text LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  hour timestamptz := clock_timestamp() - interval '1 hour';
BEGIN
  PERFORM caller('monitor');
  RETURN (
    WITH figures (name, help, labels, value) AS (
      SELECT 'tilewright_jobs', 'jobs that are not over', format('state="%s"', s.state),
             count(j.id)::double precision
      FROM (VALUES ('waiting'), ('ready'), ('leased')) s (state) LEFT JOIN jobs j USING (state)
      GROUP BY s.state
      UNION ALL
      SELECT 'tilewright_oldest_ready_seconds', 'wait of the oldest ready job', '',
             coalesce(max(extract(epoch FROM clock_timestamp() - ready_at)), 0)
      FROM jobs WHERE state = 'ready'
      UNION ALL
      SELECT 'tilewright_devices', 'devices by state', format('state="%s"', s.state), count(d.id)
      FROM (VALUES ('free'), ('leased'), ('off'), ('suspect')) s (state)
      LEFT JOIN devices d USING (state) GROUP BY s.state
      UNION ALL
      SELECT 'tilewright_lost_leases_hour', 'leases that ended by time in an hour', '', count(*)
      FROM events WHERE at > hour AND what = 'freed' AND note = 'lost'
      UNION ALL
      SELECT 'tilewright_late_posts_hour', 'posts under an ended lease in an hour', '', count(*)
      FROM late WHERE at > hour
      UNION ALL
      SELECT 'tilewright_records', 'records in the store', '', count(*) FROM records
      UNION ALL
      SELECT 'tilewright_busy_share', 'device time in leases in an hour, of all there was',
             format('class="%s"', replace(replace(d.class, '\', '\\'), '"', '\"')),
             coalesce((SELECT sum(u.seconds) FROM usage u
                       WHERE u.class = d.class AND u.at > hour), 0)
             / (3600.0 * count(*)) FROM devices d WHERE d.state <> 'off' GROUP BY d.class
      UNION ALL
      SELECT 'tilewright_blob_bytes', 'bytes of blobs', '', coalesce(sum(bytes), 0) FROM blobs
      UNION ALL
      SELECT 'tilewright_oldest_snapshot_transactions',
             'transactions since the oldest snapshot', '',
             coalesce(max(age(backend_xmin)), 0) FROM pg_stat_activity
      UNION ALL
      SELECT 'tilewright_dead_rows', 'dead rows', format('table="%s"', relname), n_dead_tup
      FROM pg_stat_user_tables WHERE schemaname = 'fleet' AND relname IN ('jobs', 'devices')
      UNION ALL
      SELECT 'tilewright_clock_steps_total', 'jumps of the server''s clock', '', moves FROM ticks
      UNION ALL
      SELECT 'tilewright_epoch', 'rises when a standby takes over', '', epoch FROM meta)
    SELECT string_agg(text, '' ORDER BY name) FROM (
      SELECT name, format(E'# HELP %s %s\n# TYPE %s %s\n', name, min(help), name,
                          CASE WHEN name LIKE '%\_total' THEN 'counter' ELSE 'gauge' END)
             || string_agg(name || coalesce('{' || nullif(labels, '') || '}', '') || ' '
                           || value || E'\n', '' ORDER BY labels) AS text
      FROM figures GROUP BY name) lines);
END $$;

-- Counts, without payloads, names of commands or ids.
CREATE VIEW queue_counts WITH (security_barrier) AS
  SELECT q.pool, q.class, count(*) FILTER (WHERE j.state = 'ready') AS ready,
         count(*) FILTER (WHERE j.state = 'waiting') AS waiting,
         count(*) FILTER (WHERE j.state = 'leased') AS leased,
         coalesce(round(extract(epoch FROM clock_timestamp() -
           min(j.ready_at) FILTER (WHERE j.state = 'ready'))), 0) AS oldest_s
  FROM jobs j JOIN queues q ON q.id = j.queue GROUP BY q.pool, q.class;

CREATE VIEW share_list WITH (security_barrier) AS
  SELECT class, login, vtime, urgent, at FROM shares;

-- A user's own.
CREATE VIEW my_runs WITH (security_barrier) AS
  SELECT id, command, made, seen, keep, cancelled, lapsed, closed FROM runs
  WHERE login = session_user;

CREATE VIEW my_jobs WITH (security_barrier) AS
  SELECT j.id, j.seq, j.run, j.kind, j.band, j.state, '' AS reason, j.n, j.next, j.losses, q.pool,
         q.class, d.name AS device
  FROM jobs j JOIN queues q ON q.id = j.queue LEFT JOIN devices d ON d.id = j.device
  WHERE j.login = session_user
  UNION ALL
  SELECT e.id, e.seq, e.run, e.kind, e.band, e.state, e.reason, e.n, e.next, e.losses, q.pool,
         q.class, d.name
  FROM ended e LEFT JOIN queues q ON q.id = e.queue LEFT JOIN devices d ON d.id = e.device
  WHERE e.login = session_user;

CREATE VIEW my_results WITH (security_barrier) AS
  SELECT r.job, r.item, r.outcome, r.reason, r.cost, r.least, r.spread, r.fastest, r.readings,
         r.output, r.at
  FROM results r
  WHERE EXISTS (SELECT FROM jobs j WHERE j.id = r.job AND j.login = session_user)
     OR EXISTS (SELECT FROM ended e WHERE e.id = r.job AND e.login = session_user);
