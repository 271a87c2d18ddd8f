-- The list of devices is asked of whole tables once. Before, each device had looked for its worker and
-- counted the jobs that wait for it: 1 000 devices with 1 000 jobs in their queue counted a million.

SET LOCAL search_path = fleet, pg_temp;

-- A device as others see it. `w`: the worker that serves it; NULL: none. `waiting`: jobs. A device
-- whose worker is silent is shown as off.
CREATE FUNCTION device_json(d devices, w workers, facts jsonb, waiting bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
  now timestamptz := clock_timestamp();
  -- greatest() would make 0 of NULL.
  silent numeric := CASE WHEN w.seen IS NOT NULL
                         THEN greatest(0, extract(epoch FROM now - w.seen)) END;
BEGIN
  RETURN jsonb_build_object(
    'name', d.name, 'key', d.key, 'pool', d.pool, 'class', d.class, 'target', d.target,
    'tags', d.tags, 'emulated', d.emulated, 'facts', facts,
    'state', CASE WHEN d.state = 'free' AND coalesce(silent > 60, true) THEN 'off' ELSE d.state END,
    'reason', CASE WHEN d.state = 'free' AND silent > 60
                   THEN format('its worker was seen %s s ago', round(silent)) ELSE d.reason END,
    'worker', w.id, 'host', w.host, 'program', w.program, 'compiler', w.compiler,
    'draining', w.state = 'draining', 'seen_s', silent, 'login_of_lease', d.login,
    'ends_s', extract(epoch FROM d.ends - now), 'held_by', d.held_by,
    'held_s', extract(epoch FROM d.held_until - now), 'waiting', waiting);
END $$;

-- The same of one device.
CREATE OR REPLACE FUNCTION device_json(d devices) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN device_json(d,
    (SELECT v FROM reaches r JOIN workers v ON v.id = r.worker
     WHERE r.device = d.id AND v.state <> 'gone'
     ORDER BY v.id = d.worker DESC NULLS LAST, v.seen DESC LIMIT 1),
    (SELECT c.facts FROM classes c WHERE c.class = d.class),
    (SELECT count(*) FROM serves s JOIN jobs j ON j.queue = s.queue AND j.state = 'ready'
     WHERE s.device = d.id));
END $$;

-- The devices of pools that the caller may use. The owner and monitors see all. Without nested loops
-- no table is read more than once, whatever the planner thinks of their sizes.
CREATE OR REPLACE FUNCTION devices() RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off SET enable_nestloop = off AS $$
DECLARE
  me text := caller('user', 'worker', 'monitor');
  everything boolean := sees_all(me);
BEGIN
  RETURN (
    WITH ready AS (
      SELECT j.queue, count(*) AS jobs FROM jobs j WHERE j.state = 'ready' GROUP BY j.queue),
    waiting AS (
      SELECT s.device, sum(r.jobs)::bigint AS jobs
      FROM ready r JOIN serves s ON s.queue = r.queue GROUP BY s.device),
    serving AS (
      SELECT DISTINCT ON (d.id) d.id AS device, v AS worker
      FROM devices d JOIN reaches r ON r.device = d.id JOIN workers v ON v.id = r.worker
      WHERE v.state <> 'gone'
      ORDER BY d.id, v.id = d.worker DESC NULLS LAST, v.seen DESC)
    SELECT coalesce(jsonb_agg(device_json(d, s.worker, c.facts, coalesce(w.jobs, 0))
                              ORDER BY d.name), '[]')
    FROM devices d JOIN classes c ON c.class = d.class
      LEFT JOIN serving s ON s.device = d.id LEFT JOIN waiting w ON w.device = d.id
    WHERE everything OR d.pool IN (SELECT m.pool FROM members m WHERE m.login = me));
END $$;

-- Leases that were lost, which status() and metrics() count: a day has millions of other events.
CREATE INDEX events_lost ON events (at) WHERE what = 'freed' AND note = 'lost';

REVOKE ALL ON FUNCTION device_json(devices, workers, jsonb, bigint) FROM PUBLIC;
