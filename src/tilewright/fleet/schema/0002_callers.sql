-- Who calls, and what every function begins with.
--
-- A function knows its caller by session_user: it runs as its owner, so current_user would say
-- nothing. A login needs a row in `logins` and membership in the group role of its kind. Members of
-- the role that owns the schema count as user, worker and monitor at once, so that a server of
-- one's own works without any of that.

SET LOCAL search_path = fleet, pg_temp;

DO $$
DECLARE
  role text;
BEGIN
  FOREACH role IN ARRAY ARRAY['tw_user', 'tw_worker', 'tw_monitor'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
      BEGIN
        EXECUTE format('CREATE ROLE %I NOLOGIN', role);
      EXCEPTION
        WHEN duplicate_object OR unique_violation THEN NULL;  -- made for another database just now
        WHEN insufficient_privilege THEN
          RAISE EXCEPTION 'the role % does not exist and % may not create it', role, current_user
            USING ERRCODE = 'TW403', HINT = format('as an administrator: CREATE ROLE %I', role);
      END;
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA fleet TO %I', role);
  END LOOP;
END $$;

-- Ends the call. Codes: TW400 usage, TW403 not allowed, TW404 nothing matches, TW409 state or
-- version does not fit, TW429 quota.
CREATE FUNCTION refuse(code text, message text, why text DEFAULT '', remedy text DEFAULT '')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF why = '' AND remedy = '' THEN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message;
  ELSIF why = '' THEN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, HINT = remedy;
  ELSIF remedy = '' THEN
    RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = why;
  END IF;
  RAISE EXCEPTION USING ERRCODE = code, MESSAGE = message, DETAIL = why, HINT = remedy;
END $$;

-- An absent or null list is an empty one.
CREATE FUNCTION list(value jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN value IS NULL OR value = 'null' THEN '[]' ELSE value END
$$;

-- Whether the caller is a member of the role that owns the schema.
CREATE FUNCTION is_owner() RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN (
    SELECT pg_has_role(session_user, nspowner, 'MEMBER') FROM pg_namespace WHERE nspname = 'fleet');
END $$;

-- The caller's login, if it is one of these kinds or the owner's. errors: TW403.
CREATE FUNCTION caller(VARIADIC kinds text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  found_kind text;
  is_off boolean;
BEGIN
  SELECT kind, off INTO found_kind, is_off FROM logins WHERE login = session_user;
  IF NOT is_off AND found_kind = ANY (kinds) THEN
    RETURN session_user;
  END IF;
  IF is_owner() THEN
    INSERT INTO logins (login, kind) VALUES (session_user, 'user') ON CONFLICT DO NOTHING;
    RETURN session_user;
  END IF;
  IF found_kind IS NULL THEN
    PERFORM refuse('TW403', format('the fleet does not know the login %s', session_user), '',
                   'its owner adds it: tilewright fleet login ' || session_user);
  ELSIF is_off THEN
    PERFORM refuse('TW403', format('the login %s is switched off', session_user), '',
                   'ask who runs the fleet');
  END IF;
  PERFORM refuse('TW403', format('the login %s may not do this', session_user),
                 format('it is a %s; this is for %s', found_kind, array_to_string(kinds, ', ')));
END $$;

-- errors: TW403.
CREATE FUNCTION require_owner() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT is_owner() THEN
    PERFORM refuse('TW403', 'only the owner of the fleet may do this',
                   format('%s is no member of the role that owns it', session_user),
                   format('ask %s', (SELECT nspowner::regrole FROM pg_namespace
                                     WHERE nspname = 'fleet')));
  END IF;
END $$;

-- What must be so for "nothing acknowledged is lost": called first wherever a lease or a job
-- depends on it. The transaction waits for the disk whatever the session says. errors: TW409.
CREATE FUNCTION check_server() RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  IF current_setting('fsync') <> 'on' THEN
    PERFORM refuse('TW409', 'this PostgreSQL server runs with fsync = off',
                   'after a power cut tokens could be given twice and jobs be lost',
                   'set fsync = on in postgresql.conf and reload');
  END IF;
END $$;

-- Makes the transaction wait for the disk when it commits. Without it a killed server could forget
-- a token that a worker has already, and give it again. A function with SET in its declaration
-- would put the setting back before the commit: hence the call.
CREATE FUNCTION durably() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('fsync') <> 'on' THEN
    PERFORM check_server();  -- says what is wrong with that
  END IF;
  -- A server with synchronous standbys may have asked for more than `on`: keep that.
  IF current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END $$;

-- The timeline of the server: it changes when a standby takes over. It stays what it is during a
-- statement, but declared as stable it could not be made part of the caller's query.
CREATE FUNCTION timeline() RETURNS int LANGUAGE sql AS $$
  SELECT ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
$$;

-- The worker with this id, if the secret is its own and the caller its login. What a worker changes
-- waits for the disk, as after durably(). errors: TW403, TW409.
CREATE FUNCTION known_worker(worker uuid, secret text) RETURNS workers LANGUAGE plpgsql AS $$
DECLARE
  me text;
  w workers;
  now timestamptz := clock_timestamp();
BEGIN
  IF current_setting('fsync') <> 'on'
     OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
    PERFORM durably();
  END IF;
  -- One look for what nearly every call finds; caller() knows the rest, and what to say.
  SELECT v.* INTO w FROM workers v
    JOIN logins l ON l.login = v.login AND l.kind = 'worker' AND NOT l.off
  WHERE v.id = known_worker.worker AND v.login = session_user
    AND v.secret_sha256 = sha256(convert_to(coalesce(secret, ''), 'UTF8'));
  IF w.id IS NULL THEN
    me := caller('worker');
    SELECT * INTO w FROM workers v
    WHERE v.id = known_worker.worker AND v.login = me
      AND v.secret_sha256 = sha256(convert_to(coalesce(secret, ''), 'UTF8'));
    IF w.id IS NULL THEN
      PERFORM refuse('TW403', 'no worker of this login has this id and secret', '',
                     'start the worker again: it enrols anew');
    END IF;
  END IF;
  IF now - w.seen NOT BETWEEN interval '-5 s' AND interval '5 s' THEN
    -- Somebody else's call for the same worker may just do that: then it need not wait for it.
    PERFORM FROM workers WHERE id = w.id FOR NO KEY UPDATE SKIP LOCKED;
    IF FOUND THEN
      UPDATE workers SET seen = now WHERE id = w.id;
    END IF;
  END IF;
  RETURN w;
END $$;

-- Whether a login may submit to a pool or serve in it, with devices of this class; an empty class:
-- with some.
CREATE FUNCTION may(login text, pool text, what text, class text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN is_owner() OR EXISTS (
    SELECT FROM members m
    WHERE m.pool = may.pool AND m.login = may.login AND m.may = may.what
      AND (may.class = '' OR may.class LIKE replace(replace(replace(replace(
             m.target, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')));
END $$;

CREATE FUNCTION note(what text, job uuid, token bigint, device bigint, worker uuid, login text,
                     seconds double precision DEFAULT NULL, note text DEFAULT '')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO events (at, what, job, token, device, worker, login, seconds, note)
  VALUES (clock_timestamp(), note.what, note.job, note.token, note.device, note.worker, note.login,
          note.seconds, note.note);
END $$;

-- What a program asks first: is this a schema that it can use?
CREATE FUNCTION version() RETURNS jsonb LANGUAGE plpgsql
SECURITY DEFINER SET search_path = fleet, pg_temp SET jit = off AS $$
BEGIN
  PERFORM caller('user', 'worker', 'monitor');
  RETURN (SELECT jsonb_build_object('version', version, 'min_program', min_program, 'epoch', epoch)
          FROM meta);
END $$;
