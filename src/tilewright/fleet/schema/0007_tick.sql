-- Time. Only the clock of the server counts, and only tick() compares it with anything that
-- matters.
--
-- Any client calls it, every second or two. What it does when all is well: ends leases whose end
-- has passed. But if the last tick is not 0 to 5 s ago, then the server was down, nobody was
-- connected, or the clock was set; nobody could renew a lease meanwhile, or the ends are on another
-- clock. Example: the last tick was at 12:00:00, the clock steps to 13:00:01. A lease renewed at
-- 11:59:55 ends at 12:00:25; now it ends at 13:00:25. One that was renewed after the step, at
-- 13:00:00.5, stays as it is: that end is on the new clock.

SET LOCAL search_path = fleet, pg_temp;

-- Ends what has to end. `ended`: leases; `moved_ms`: by how much the clock or the server had
-- jumped.
CREATE FUNCTION tick() RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp
SET enable_seqscan = off SET jit = off AS $$
DECLARE
  m meta;
  t ticks;
  now timestamptz;
  past double precision;
  ended int := 0;
  moved double precision := 0;
BEGIN
  PERFORM caller('user', 'worker', 'monitor');
  PERFORM durably();
  SELECT * INTO m FROM meta;
  SELECT * INTO t FROM ticks;
  past := extract(epoch FROM clock_timestamp() - t.last);
  IF m.timeline = timeline() AND past >= 0 AND past < least(1, m.lease_s / 4)
     OR NOT pg_try_advisory_xact_lock(7022365336) THEN
    RETURN jsonb_build_object('ended', 0, 'moved_ms', 0);
  END IF;
  SELECT * INTO m FROM meta;
  SELECT * INTO t FROM ticks;  -- somebody else's tick may just have committed
  now := clock_timestamp();
  past := extract(epoch FROM now - t.last);
  IF m.timeline <> timeline() THEN
    ended := new_epoch();
  END IF;
  IF past < 0 OR past > 5 THEN
    PERFORM move_times(t.last, now, m.lease_s);
    moved := past;
  END IF;
  UPDATE ticks SET last = now, moves = moves + (moved <> 0)::int;
  ended := ended + end_leases(now);
  PERFORM judge_devices();
  PERFORM end_holds(now);
  PERFORM wake_waiting();
  PERFORM end_lost_runs(now);
  PERFORM tidy_lines();
  PERFORM fold_usage();
  RETURN jsonb_build_object('ended', ended, 'moved_ms', round(moved * 1000));
END $$;

-- Moves ends of leases and all else that is compared with the clock, from the clock that said
-- `last` to the one that says `now`. A lease gets no more than a whole one; and it loses a
-- thirtieth, so that a dead one ends even if nobody ever comes twice within 5 s.
CREATE FUNCTION move_times(last timestamptz, now timestamptz, lease_s double precision)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  step interval := now - last;
  -- Times after this (before it, where the clock was set back) are on the new clock: nobody
  -- ticked, but somebody worked.
  border timestamptz := CASE WHEN now > last THEN last + interval '5 s'
                        ELSE now + (last - now) / 2 END;
BEGIN
  UPDATE devices d SET
      ends = least(d.ends + step - lease_s / 30 * interval '1 s', now + lease_s * interval '1 s'),
      renewed = least(d.renewed + step, now), since = least(d.since + step, now)
    WHERE d.state = 'leased' AND (d.renewed > border) = (now < last);
  UPDATE devices d SET held_until = d.held_until + step WHERE d.held_by IS NOT NULL;
  UPDATE runs r SET seen = least(r.seen + step, now)
    WHERE NOT r.keep AND r.cancelled IS NULL AND r.lapsed IS NULL AND r.closed IS NULL
      AND (r.seen > border) = (now < last);
  PERFORM note('moved', NULL, NULL, NULL, NULL, NULL, extract(epoch FROM step));
END $$;

-- A standby took over; it may have missed the newest leases. All end, without a loss. Tokens begin
-- with the epoch: those of the lost past are not drawn again.
CREATE FUNCTION new_epoch() RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  d devices;
  count int := 0;
BEGIN
  UPDATE meta SET epoch = epoch + 1, timeline = timeline();
  FOR d IN SELECT * FROM devices v WHERE v.state = 'leased' ORDER BY v.id FOR NO KEY UPDATE LOOP
    PERFORM end_lease(d, 'void');
    count := count + 1;
  END LOOP;
  PERFORM note('epoch', NULL, NULL, NULL, NULL, NULL);
  RETURN count;
END $$;

-- Devices that a post or a renewal has locked are passed over: that moves their end.
-- The clock may be set back while a tick runs: the earlier of its two readings counts, here and below.
CREATE FUNCTION end_leases(now timestamptz) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  d devices;
  count int := 0;
BEGIN
  FOR d IN
    SELECT * FROM devices v WHERE v.state = 'leased' AND v.ends < least(now, clock_timestamp())
    ORDER BY v.id FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    PERFORM end_lease(d, 'lost');
    count := count + 1;
  END LOOP;
  RETURN count;
END $$;

CREATE FUNCTION end_holds(now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE devices SET held_by = NULL, held_until = NULL
  WHERE id IN (SELECT id FROM devices WHERE held_until < least(now, clock_timestamp())
               FOR NO KEY UPDATE SKIP LOCKED);
END $$;

-- Jobs whose last predecessor ended while they were being submitted, or together with another.
CREATE FUNCTION wake_waiting() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  job jobs;
BEGIN
  FOR job IN
    SELECT * FROM jobs w
    WHERE w.state = 'waiting' AND NOT EXISTS (SELECT FROM jobs a WHERE a.id = ANY (w.after))
    ORDER BY w.id FOR UPDATE SKIP LOCKED
  LOOP
    PERFORM wake(job);
  END LOOP;
END $$;

-- Runs whose submitter is gone lose what has not begun; a later look or submit revives them. And
-- what came back to a run while it was being cancelled ends, too.
CREATE FUNCTION end_lost_runs(now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  r runs;
BEGIN
  FOR r IN
    SELECT v.* FROM runs v, meta m
    WHERE NOT v.keep AND v.cancelled IS NULL AND v.lapsed IS NULL AND v.closed IS NULL
      AND v.seen < least(now, clock_timestamp()) - m.run_s * interval '1 s'
    ORDER BY v.id FOR NO KEY UPDATE OF v SKIP LOCKED
  LOOP
    UPDATE runs v SET lapsed = now WHERE v.id = r.id;
    PERFORM end_unstarted(r.id, 'nobody asked for its results');
  END LOOP;
  FOR r IN
    SELECT * FROM runs v WHERE v.cancelled IS NOT NULL AND NOT v.settled
    ORDER BY v.id FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    PERFORM end_unstarted(r.id, 'its run was cancelled');
    UPDATE runs v SET settled = true
      WHERE v.id = r.id AND NOT EXISTS (SELECT FROM jobs j WHERE j.run = v.id);
  END LOOP;
END $$;

-- Sets where claim() begins to look. A line that somebody has locked is passed over. The row is
-- locked before its jobs are looked at: who adds one locks it first, so none is missed.
CREATE FUNCTION tidy_lines() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  l lines;
  first bigint;
BEGIN
  FOR l IN SELECT * FROM lines v WHERE NOT v.idle ORDER BY v.queue, v.login LOOP
    SELECT * INTO l FROM lines v WHERE v.queue = l.queue AND v.login = l.login
      FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN l.queue IS NULL;
    SELECT min(f.seq) INTO first FROM (VALUES (0), (1), (2)) b (band) CROSS JOIN LATERAL (
      SELECT j.seq FROM jobs j
      WHERE j.queue = l.queue AND j.band = b.band AND j.login = l.login AND j.state = 'ready'
        AND j.seq >= l.low
      ORDER BY j.seq LIMIT 1) f;
    IF first IS NULL THEN
      UPDATE lines v SET idle = true, low = (SELECT last_value + 1 FROM seqs)
        WHERE v.queue = l.queue AND v.login = l.login;
    ELSIF first > l.low + 100 THEN
      UPDATE lines v SET low = first WHERE v.queue = l.queue AND v.login = l.login;
    END IF;
  END LOOP;
END $$;

-- Looks at the devices that new pairs are about: those that are at odds with others get no more jobs
-- until somebody clears them, and nothing that they measured is trusted. A device that somebody has
-- locked is judged by the next tick.
CREATE FUNCTION judge_devices() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  d devices;
  why text;
BEGIN
  FOR d IN
    SELECT * FROM devices v WHERE v.id IN (SELECT p.device FROM pairs p WHERE p.fresh)
    ORDER BY v.id FOR NO KEY UPDATE SKIP LOCKED
  LOOP
    why := odds_of(d.id);
    IF why IS DISTINCT FROM '' THEN
      UPDATE pairs p SET fresh = false WHERE p.device = d.id AND p.fresh;
    END IF;
    DELETE FROM pairs p USING (
      SELECT q.id, row_number() OVER (ORDER BY q.id DESC) AS place,
             row_number() OVER (PARTITION BY q.other ORDER BY q.id DESC) AS place_of_other
      FROM pairs q WHERE q.device = d.id) old
    WHERE p.id = old.id AND old.place > 10 AND old.place_of_other > 3;
    CONTINUE WHEN coalesce(why, '') = '' OR d.state = 'suspect';
    IF d.state = 'leased' THEN
      PERFORM end_lease(d, 'doubted');
    END IF;
    UPDATE devices v SET state = 'suspect', reason = why WHERE v.id = d.id;
    UPDATE records r SET trust = 0 WHERE r.device = d.id AND r.trust > 0;
    PERFORM note('suspect', NULL, NULL, d.id, NULL, NULL, NULL, why);
  END LOOP;
END $$;

-- Why a device is taken for another machine than it says; null: it is not. Empty: it is unlike
-- others, and nobody can tell who is wrong until those are compared among themselves.
--
-- Of two devices that disagree, a third must tell which one is wrong. Example: a, b and c are alike,
-- x is slow with every second candidate. x disagrees with a, who agrees with b: a is *backed*. So
-- are b and c: three are against x, and nobody is like it. For a it looks different: x is against
-- it, but nobody agrees with x. So a device is at odds where the median of its last ten pairs is out
-- of the tenth that devices may differ by, and more backed devices are against it than are of its
-- own kind, itself included. With fewer than six pairs, or two devices in a class, nobody can tell.
CREATE FUNCTION odds_of(device bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  pairs_seen int;
  median double precision;
  against text[];
  beside int;
BEGIN
  WITH mine AS (
    SELECT p.id, p.other, abs(p.ratio) AS off FROM pairs p
    JOIN devices o ON o.id = p.other AND o.state <> 'suspect'
    WHERE p.device = odds_of.device),
  last AS (SELECT * FROM mine ORDER BY id DESC LIMIT 10),
  others AS (
    SELECT m.other, alike(percentile_cont(0.5) WITHIN GROUP (ORDER BY m.off)) AS near
    FROM mine m GROUP BY m.other)
  SELECT (SELECT count(*) FROM last),
         (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY off) FROM last),
         array_agg(d.name ORDER BY d.name)
           FILTER (WHERE NOT o.near AND is_backed(o.other, odds_of.device)),
         count(*) FILTER (WHERE o.near)
  INTO pairs_seen, median, against, beside
  FROM others o JOIN devices d ON d.id = o.other;
  IF pairs_seen >= 6 AND NOT alike(median) THEN
    IF coalesce(cardinality(against), 0) <= beside + 1 THEN
      RETURN '';
    END IF;
    RETURN format('the same candidates cost it %s %% more or less than %s (median of %s)',
                  round(100 * (exp(median) - 1)), array_to_string(against[:5], ', '), pairs_seen);
  END IF;
  RETURN NULL;
END $$;

-- Whether a device is like some other one, apart from `but`.
CREATE FUNCTION is_backed(device bigint, but bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM pairs p JOIN devices o ON o.id = p.other AND o.state <> 'suspect'
    WHERE p.device = is_backed.device AND p.other <> but GROUP BY p.other
    HAVING alike(percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(p.ratio))));
END $$;

-- Brings the seconds of ended leases into the shares.
CREATE FUNCTION fold_usage() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  u record;
BEGIN
  FOR u IN
    SELECT class, login, array_agg(token) AS tokens, sum(seconds) AS seconds,
           coalesce(sum(seconds) FILTER (WHERE urgent), 0) AS urgent
    FROM usage WHERE NOT folded GROUP BY class, login ORDER BY class, login
  LOOP
    IF charge(u.class, u.login, u.seconds, u.urgent, false) THEN
      UPDATE usage SET folded = true WHERE token = ANY (u.tokens);
    END IF;
  END LOOP;
END $$;
