-- Tags belong to what a worker offers: a device has those of all workers that reach it. Example: one
-- worker offers a board as `desk`, another one as `lab`: jobs for either go there. When the second
-- one leaves, `lab` goes with it. A device that nobody reaches keeps what it had last, so that
-- a command that asks for a tag can say that such devices are off.

SET LOCAL search_path = fleet, pg_temp;

ALTER TABLE reaches ADD COLUMN tags text[] NOT NULL DEFAULT '{}';
UPDATE reaches r SET tags = d.tags FROM devices d WHERE d.id = r.device;

-- A worker that was killed never leaves: one that was not seen for longer than a lease lasts counts
-- as gone until it comes back. Whoever is alive asks for something more often.
CREATE FUNCTION retag(device bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  d devices;
  joined text[];
BEGIN
  WITH live AS (
    SELECT r.tags FROM reaches r JOIN workers w ON w.id = r.worker CROSS JOIN meta m
    WHERE r.device = retag.device AND w.state <> 'gone'
      AND abs(extract(epoch FROM clock_timestamp() - w.seen)) < greatest(m.lease_s, 30) + 5)
  SELECT ARRAY(SELECT DISTINCT t FROM live l, unnest(l.tags) t ORDER BY t) INTO joined
  WHERE EXISTS (SELECT FROM live);
  UPDATE devices v SET tags = joined
    WHERE v.id = retag.device AND joined IS NOT NULL AND v.tags <> joined RETURNING * INTO d;
  IF FOUND THEN
    PERFORM FROM pools p WHERE p.pool = d.pool FOR NO KEY UPDATE;  -- as who makes a queue does
    DELETE FROM serves s WHERE s.device = d.id;
    INSERT INTO serves (device, queue)
      SELECT d.id, q.id FROM queues q WHERE q.pool = d.pool AND fits(d, q);
  END IF;
END $$;

-- add_device() has just given the device the tags of this worker.
CREATE FUNCTION keep_tags() RETURNS trigger LANGUAGE plpgsql
SET search_path = fleet, pg_temp AS $$
BEGIN
  NEW.tags := (SELECT d.tags FROM devices d WHERE d.id = NEW.device);
  RETURN NEW;
END $$;
CREATE TRIGGER keep_tags BEFORE INSERT ON reaches FOR EACH ROW EXECUTE FUNCTION keep_tags();

CREATE FUNCTION join_tags() RETURNS trigger LANGUAGE plpgsql
SET search_path = fleet, pg_temp AS $$
BEGIN
  PERFORM retag(coalesce(NEW.device, OLD.device));
  RETURN NULL;
END $$;
CREATE TRIGGER join_tags AFTER INSERT OR DELETE ON reaches FOR EACH ROW EXECUTE FUNCTION join_tags();

-- A worker that was away for long is back, and its tags with it.
CREATE FUNCTION return_tags() RETURNS trigger LANGUAGE plpgsql
SET search_path = fleet, pg_temp AS $$
BEGIN
  PERFORM retag(r.device) FROM reaches r WHERE r.worker = NEW.id ORDER BY r.device;
  RETURN NULL;
END $$;
CREATE TRIGGER return_tags AFTER UPDATE OF seen ON workers FOR EACH ROW
  WHEN (NEW.seen > OLD.seen + interval '30 s') EXECUTE FUNCTION return_tags();

REVOKE ALL ON FUNCTION retag(bigint), keep_tags(), join_tags(), return_tags() FROM PUBLIC;
