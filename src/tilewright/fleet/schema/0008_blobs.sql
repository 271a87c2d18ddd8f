-- Files of users and jobs, by their content: parts of 1 MiB, the last one shorter. They belong to a
-- login; the holder of a lease reads those that its job names, and adds what the job made.

SET LOCAL search_path = fleet, pg_temp;

-- errors: TW400.
CREATE FUNCTION check_size(sha256 text, bytes bigint, parts int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF sha256 IS NULL OR sha256 !~ '^[0-9a-f]{64}$' THEN
    PERFORM refuse('TW400', format('%s is no SHA-256', left(sha256, 80)), '',
                   '64 digits 0-9 and a-f');
  ELSIF bytes IS NULL OR bytes < 0 OR bytes > 1000::bigint << 20 THEN
    PERFORM refuse('TW400', format('a blob has %s bytes', bytes), 'at most 1000 MiB');
  ELSIF parts IS DISTINCT FROM greatest(1, (bytes + (1 << 20) - 1) >> 20)::int THEN
    PERFORM refuse('TW400', format('%s bytes are not %s parts', bytes, parts),
                   'parts have 1 MiB, the last one the rest');
  END IF;
END $$;

CREATE FUNCTION state_of_blob(login text, sha256 text) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object(
    'whole', coalesce((SELECT b.whole FROM blobs b WHERE b.login = state_of_blob.login
                       AND b.sha256 = state_of_blob.sha256), false),
    'have', (SELECT coalesce(jsonb_agg(p.part ORDER BY p.part), '[]') FROM blob_parts p
             WHERE p.login = state_of_blob.login AND p.sha256 = state_of_blob.sha256))
$$;

-- Makes the row of a blob, within the login's quota; the row stays locked.
CREATE FUNCTION begin_blob(login text, sha256 text, bytes bigint, parts int) RETURNS void
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  quota bigint;
  there bigint;
BEGIN
  PERFORM check_size(sha256, bytes, parts);
  SELECT b.bytes INTO there FROM blobs b
  WHERE b.login = begin_blob.login AND b.sha256 = begin_blob.sha256;
  IF there IS NULL THEN
    SELECT blob_bytes INTO quota FROM logins l WHERE l.login = begin_blob.login FOR NO KEY UPDATE;
    SELECT coalesce(sum(b.bytes), 0) INTO there FROM blobs b WHERE b.login = begin_blob.login;
    IF there + begin_blob.bytes > quota THEN
      PERFORM refuse('TW429', format('the blobs of %s would have more than %s bytes', login, quota),
                     format('there are %s, %s are new', there, begin_blob.bytes),
                     'its owner removes old ones with tilewright fleet gc, or allows more');
    END IF;
    INSERT INTO blobs (login, sha256, bytes, parts, used)
      VALUES (begin_blob.login, begin_blob.sha256, begin_blob.bytes, begin_blob.parts,
              clock_timestamp())
      ON CONFLICT DO NOTHING;
  ELSIF there <> begin_blob.bytes THEN
    PERFORM refuse('TW409', format('the blob %s has %s bytes, not %s', sha256, there,
                                   begin_blob.bytes));
  END IF;
  UPDATE blobs b SET used = clock_timestamp()
  WHERE b.login = begin_blob.login AND b.sha256 = begin_blob.sha256;
END $$;

-- Stores a part; one that is there stays as it is. errors: TW400, TW404.
CREATE FUNCTION put_part(login text, sha256 text, part int, data bytea) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  b blobs;
BEGIN
  SELECT * INTO b FROM blobs v WHERE v.login = put_part.login AND v.sha256 = put_part.sha256
    FOR KEY SHARE;
  IF b.sha256 IS NULL THEN
    PERFORM refuse('TW404', format('the blob %s was not begun', sha256));
  END IF;
  IF b.whole THEN
    RETURN;
  END IF;
  IF part IS NULL OR part < 0 OR part >= b.parts OR octet_length(data) IS DISTINCT FROM
     (CASE WHEN part < b.parts - 1 THEN 1 << 20 ELSE b.bytes - ((b.parts - 1)::bigint << 20) END)
  THEN
    PERFORM refuse('TW400', format('part %s of the blob %s has %s bytes', part, sha256,
                                   octet_length(data)),
                   format('it has %s bytes in %s parts of 1 MiB', b.bytes, b.parts));
  END IF;
  INSERT INTO blob_parts (login, sha256, part, data)
    VALUES (put_part.login, put_part.sha256, put_part.part, put_part.data) ON CONFLICT DO NOTHING;
END $$;

-- Declares a blob whole, if its parts are what its name says; else its parts are removed.
-- errors: TW404, TW409 (a part is missing).
CREATE FUNCTION finish_blob(login text, sha256 text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  b blobs;
  found text;
  count int;
BEGIN
  SELECT * INTO b FROM blobs v WHERE v.login = finish_blob.login AND v.sha256 = finish_blob.sha256
    FOR UPDATE;
  IF b.sha256 IS NULL THEN
    PERFORM refuse('TW404', format('the blob %s was not begun', sha256));
  ELSIF b.whole THEN
    RETURN true;
  END IF;
  SELECT count(*) INTO count FROM blob_parts p
  WHERE p.login = finish_blob.login AND p.sha256 = finish_blob.sha256;
  IF count < b.parts THEN
    PERFORM refuse('TW409', format('the blob %s has %s of %s parts', b.sha256, count, b.parts));
  END IF;
  SELECT encode(sha256(string_agg(p.data, ''::bytea ORDER BY p.part)), 'hex') INTO found
  FROM blob_parts p WHERE p.login = finish_blob.login AND p.sha256 = finish_blob.sha256;
  IF found <> b.sha256 THEN
    DELETE FROM blob_parts p WHERE p.login = finish_blob.login AND p.sha256 = finish_blob.sha256;
    RETURN false;
  END IF;
  UPDATE blobs v SET whole = true, used = clock_timestamp()
    WHERE v.login = finish_blob.login AND v.sha256 = finish_blob.sha256;
  RETURN true;
END $$;

-- Which parts of a blob of the caller's login are here.
CREATE FUNCTION blob_state(sha256 text) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  RETURN state_of_blob(caller('user'), sha256);
END $$;

-- Those of some blobs of the caller's login that are whole; they count as used now.
CREATE FUNCTION blobs_whole(sha256s text[]) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user');
BEGIN
  UPDATE blobs b SET used = clock_timestamp()
    WHERE b.login = me AND b.sha256 = ANY (sha256s) AND b.whole
      AND b.used < clock_timestamp() - interval '1 hour';
  RETURN (SELECT coalesce(jsonb_agg(b.sha256 ORDER BY b.sha256), '[]') FROM blobs b
          WHERE b.login = me AND b.sha256 = ANY (sha256s) AND b.whole);
END $$;

-- Announces a blob; the same answer as of blob_state. errors: TW400, TW409, TW429.
CREATE FUNCTION blob_begin(sha256 text, bytes bigint, parts int) RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user');
BEGIN
  PERFORM begin_blob(me, sha256, bytes, parts);
  RETURN state_of_blob(me, sha256);
END $$;

-- errors: TW400, TW404.
CREATE FUNCTION blob_put(sha256 text, part int, data bytea) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  PERFORM put_part(caller('user'), sha256, part, data);
END $$;

-- False: the parts were not what the name says, and are gone. errors: TW404, TW409.
CREATE FUNCTION blob_finish(sha256 text) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  PERFORM durably();
  RETURN finish_blob(caller('user'), sha256);
END $$;

-- False: a whole blob is not what its name says any more; it is forgotten, to be uploaded anew.
CREATE FUNCTION blob_check(sha256 text) RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  me text := caller('user');
BEGIN
  UPDATE blobs b SET whole = false WHERE b.login = me AND b.sha256 = blob_check.sha256 AND b.whole;
  IF NOT FOUND THEN
    RETURN true;
  END IF;
  IF (SELECT count(*) FROM blob_parts p WHERE p.login = me AND p.sha256 = blob_check.sha256)
     < (SELECT b.parts FROM blobs b WHERE b.login = me AND b.sha256 = blob_check.sha256) THEN
    RETURN false;
  END IF;
  RETURN finish_blob(me, sha256);
END $$;

-- A part of a whole blob of the caller's login. errors: TW404.
CREATE FUNCTION blob_get(sha256 text, part int) RETURNS bytea LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  RETURN part_of(caller('user'), sha256, part);
END $$;

CREATE FUNCTION part_of(login text, sha256 text, part int) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
  found bytea;
BEGIN
  SELECT p.data INTO found FROM blob_parts p JOIN blobs b USING (login, sha256)
  WHERE p.login = part_of.login AND p.sha256 = part_of.sha256 AND p.part = part_of.part AND b.whole;
  IF found IS NULL THEN
    PERFORM refuse('TW404', format('%s has no part %s of a whole blob %s', login, part, sha256));
  END IF;
  RETURN found;
END $$;

-- The login of a job that the worker has leased under this token. errors: TW403.
CREATE FUNCTION login_of_leased(w workers, device bigint, token bigint, job uuid) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  found text;
BEGIN
  SELECT j.login INTO found FROM jobs j JOIN devices d ON d.id = j.device AND d.token = j.token
  WHERE j.id = login_of_leased.job AND d.id = login_of_leased.device
    AND d.token = login_of_leased.token AND d.worker = w.id AND d.state = 'leased';
  IF found IS NULL THEN
    PERFORM refuse('TW403',
                   format('job %s is not leased to this worker under token %s', job, token),
                   'its lease may be over');
  END IF;
  RETURN found;
END $$;

-- A part of a blob that a job names. errors: TW403, TW404.
CREATE FUNCTION worker_blob_get(worker uuid, secret text, device bigint, token bigint, job uuid,
                                sha256 text, part int)
RETURNS bytea LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  login text := login_of_leased(known_worker(worker, secret), device, token, job);
BEGIN
  IF NOT EXISTS (SELECT FROM job_blobs b WHERE b.job = worker_blob_get.job
                 AND b.sha256 = worker_blob_get.sha256 AND NOT b.output) THEN
    PERFORM refuse('TW403', format('job %s does not name the blob %s', job, sha256));
  END IF;
  RETURN part_of(login, sha256, part);
END $$;

-- Adds a part of what a job made; true: the blob is whole. It belongs to the job's login and counts
-- in its quota. False after the last part: the parts were not what the name says, and are gone.
-- errors: TW400, TW403, TW409, TW429.
CREATE FUNCTION worker_blob_put(worker uuid, secret text, device bigint, token bigint, job uuid,
                                sha256 text, bytes bigint, parts int, part int, data bytea)
RETURNS boolean LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
DECLARE
  owner text := login_of_leased(known_worker(worker, secret), device, token, job);
BEGIN
  PERFORM begin_blob(owner, sha256, bytes, parts);
  PERFORM put_part(owner, sha256, part, data);
  INSERT INTO job_blobs (job, login, sha256, name, output)
    VALUES (worker_blob_put.job, owner, worker_blob_put.sha256, worker_blob_put.sha256, true)
    ON CONFLICT DO NOTHING;
  IF (SELECT count(*) FROM blob_parts p WHERE p.login = owner
        AND p.sha256 = worker_blob_put.sha256) < parts THEN
    RETURN false;
  END IF;
  PERFORM durably();
  RETURN finish_blob(owner, sha256);
END $$;
