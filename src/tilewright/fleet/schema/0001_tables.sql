-- The tables of the fleet: who waits for which device, who has it, what came of it.
--
-- The life of a job. Ann wants 16 candidates of a convolution measured on a znver4:
--
--   submit     a row in `jobs`, state `ready`, in the queue (pool lab, class cpu:znver4/8f3a, ...).
--              Its id was made by Ann's program: sending it again after a lost reply adds nothing.
--   claim      worker W asks for work for device 7. The row of device 7 becomes `leased`, with a
--              fresh token 4711 and an end 30 s from now; the job becomes `leased` with token 4711.
--   post       W sends results 0 to 7, then 8 to 15, each with its token. The function locks the
--              device, compares the token there, and only then stores anything: if device 7 had
--              been given to somebody else meanwhile, the answer would be `stale`.
--   the end    With result 15 the job leaves `jobs` and enters `ended` as `done`; it was the last
--              job of the lease, so the device is `free` again, in the same transaction.
--   look       Ann's program asks every second and gets the results it does not have yet.
--
-- If W dies after result 7, nobody renews the lease. tick() sees its end pass: the device is free,
-- the job is `ready` at its old place with `next` = 8, and item 8 is a suspect.
--
-- Nothing here is for callers: they use functions only. The role that runs these files owns it all.
-- So what submit() has checked of a job is not checked again here, nor that functions write one of the
-- states that there are: the server reads the text of each CHECK anew in each statement that changes a
-- row. Those of the rows that a lease changes are short.

CREATE SCHEMA fleet;
REVOKE ALL ON SCHEMA fleet FROM PUBLIC;
SET LOCAL search_path = fleet, pg_temp;

-- Which of these files were applied. Who applies them fills it.
CREATE TABLE migrations (
  version int PRIMARY KEY,
  sha256 text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  by text NOT NULL DEFAULT session_user
);

-- One row. It changes rarely: every claim reads it.
CREATE TABLE meta (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  version int NOT NULL,
  min_program text NOT NULL,      -- older programs must not use this schema
  epoch bigint NOT NULL,          -- rises when a standby took over
  timeline int NOT NULL,          -- of the server, when the epoch was set
  lease_s double precision NOT NULL CHECK (lease_s > 0),
  run_s double precision NOT NULL CHECK (run_s > 0)  -- a run nobody looks at for so long is lost
);

-- One row that changes every second; apart from `meta`, so that nobody else reads its dead
-- versions.
CREATE TABLE ticks (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  last timestamptz NOT NULL,
  moves bigint NOT NULL DEFAULT 0          -- how often the clock had stepped
);

CREATE TABLE logins (
  login text PRIMARY KEY,
  kind text NOT NULL CHECK (kind IN ('user', 'worker', 'monitor')),
  weight double precision NOT NULL DEFAULT 1 CHECK (weight > 0 AND weight < 1e6),
  max_ready int NOT NULL DEFAULT 20000 CHECK (max_ready >= 0),
  blob_bytes bigint NOT NULL DEFAULT 20::bigint << 30 CHECK (blob_bytes >= 0),
  off boolean NOT NULL DEFAULT false
);

CREATE TABLE pools (
  pool text PRIMARY KEY CHECK (pool <> '' AND length(pool) <= 63),
  max_seconds double precision NOT NULL DEFAULT 600 CHECK (max_seconds > 0)
);

-- Who trusts whom with what. `target`: a pattern with * for the classes of devices, as in cpu:*.
CREATE TABLE members (
  pool text NOT NULL REFERENCES pools ON DELETE CASCADE,
  login text NOT NULL REFERENCES logins ON DELETE CASCADE,
  may text NOT NULL CHECK (may IN ('submit', 'serve')),
  target text NOT NULL DEFAULT '*',
  PRIMARY KEY (pool, login, may)
);

-- A program that serves devices; each start of it is a new row.
CREATE TABLE workers (
  id uuid PRIMARY KEY,
  login text NOT NULL REFERENCES logins,
  host text NOT NULL,
  secret_sha256 bytea NOT NULL,   -- workers of a site share a login: only this tells them apart
  program text NOT NULL,
  compiler text NOT NULL,
  sandbox text NOT NULL,
  seen timestamptz NOT NULL,
  state text NOT NULL DEFAULT 'up' CHECK (state IN ('up', 'draining', 'gone', 'suspect')),
  reason text NOT NULL DEFAULT ''
) WITH (fillfactor = 70);

-- Costs compare inside one class only: a target and a hash of what else makes it fast or slow.
CREATE TABLE classes (
  class text PRIMARY KEY CHECK (class <> ''),
  target text NOT NULL,
  facts jsonb NOT NULL,
  rates jsonb NOT NULL
);

-- A device, with its lease. The end of a lease is kept here and nowhere else. No index has a column
-- that a lease changes, so a lease writes no index: tick() reads all devices once a second instead.
CREATE TABLE devices (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  key text NOT NULL UNIQUE,       -- site/host/serial
  pool text NOT NULL REFERENCES pools,
  name text NOT NULL UNIQUE,      -- for people
  class text NOT NULL REFERENCES classes,
  target text NOT NULL,
  tags text[] NOT NULL,
  emulated boolean NOT NULL,      -- its times say nothing: no records
  state text NOT NULL DEFAULT 'free',  -- free, leased, off, suspect
  reason text NOT NULL DEFAULT '',
  token bigint,
  worker uuid,
  login text,                     -- of the jobs of the lease: one only
  urgent boolean NOT NULL DEFAULT false,  -- so are those jobs
  asked int NOT NULL DEFAULT 0,   -- how often its worker asked for the same lease again
  since timestamptz,              -- the lease began
  renewed timestamptz,            -- what the clock said when `ends` was set
  ends timestamptz,
  losses int NOT NULL DEFAULT 0,  -- leases that ended by time since the last result
  sound_from bigint NOT NULL DEFAULT 0,  -- what it measured under earlier tokens confirms nothing
  held_by text,                   -- only this login's jobs go there
  held_until timestamptz,
  CHECK (num_nulls(token, worker, login, since, renewed, ends) =
           CASE state WHEN 'leased' THEN 0 ELSE 6 END)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
CREATE INDEX devices_pool ON devices (pool);

-- Several workers may reach one board.
CREATE TABLE reaches (
  worker uuid NOT NULL REFERENCES workers ON DELETE CASCADE,
  device bigint NOT NULL REFERENCES devices ON DELETE CASCADE,
  PRIMARY KEY (worker, device)
);
CREATE INDEX reaches_device ON reaches (device);

-- What jobs ask of a device; an empty text asks nothing. `needs` is sorted.
CREATE TABLE queues (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pool text NOT NULL REFERENCES pools,
  class text NOT NULL,
  compiler text NOT NULL,
  device text NOT NULL,
  needs text[] NOT NULL,
  used timestamptz NOT NULL DEFAULT clock_timestamp(),
  notified timestamptz NOT NULL DEFAULT '2000-01-01',  -- when listeners were last told of work
  UNIQUE (pool, class, compiler, device, needs)
);

-- Which devices can take the jobs of a queue. The compiler is the worker's: claim() compares it.
CREATE TABLE serves (
  device bigint NOT NULL REFERENCES devices ON DELETE CASCADE,
  queue bigint NOT NULL REFERENCES queues ON DELETE CASCADE,
  PRIMARY KEY (device, queue)
);
CREATE INDEX serves_queue ON serves (queue);

-- The jobs of one login in one queue. No ready one has a `seq` below `low`: claim() looks from
-- there on, not at the dead rows that an old snapshot keeps before it. `idle`: none is ready.
CREATE TABLE lines (
  queue bigint NOT NULL REFERENCES queues ON DELETE CASCADE,
  login text NOT NULL REFERENCES logins ON DELETE CASCADE,
  low bigint NOT NULL DEFAULT 0,
  idle boolean NOT NULL DEFAULT false,
  PRIMARY KEY (queue, login)
) WITH (fillfactor = 70);
CREATE INDEX lines_busy ON lines (queue) WHERE NOT idle;

-- What a login had of a class: device seconds over its weight, halved each hour. `vtime` is what it
-- was at `at`. `urgent`: the seconds of urgent jobs alone, unweighted.
CREATE TABLE shares (
  class text NOT NULL,
  login text NOT NULL REFERENCES logins ON DELETE CASCADE,
  vtime double precision NOT NULL,
  urgent double precision NOT NULL DEFAULT 0,
  at timestamptz NOT NULL,
  PRIMARY KEY (class, login)
) WITH (fillfactor = 50);

-- A row per ended lease. `folded`: it is in `shares`.
CREATE TABLE usage (
  token bigint PRIMARY KEY,
  at timestamptz NOT NULL,
  class text NOT NULL,
  login text NOT NULL,
  seconds double precision NOT NULL CHECK (seconds >= 0),
  urgent boolean NOT NULL,
  folded boolean NOT NULL
);
CREATE INDEX usage_new ON usage (token) WHERE NOT folded;
CREATE INDEX usage_at ON usage USING brin (at);

CREATE TABLE runs (
  id uuid PRIMARY KEY,
  login text NOT NULL REFERENCES logins,
  command text NOT NULL,
  made timestamptz NOT NULL,
  seen timestamptz NOT NULL,
  keep boolean NOT NULL,
  cancelled timestamptz,
  lapsed timestamptz,             -- nobody looked: its unstarted jobs are gone
  settled boolean NOT NULL DEFAULT false,  -- it was cancelled, and no job of it is left
  closed timestamptz              -- its results were fetched and removed
) WITH (fillfactor = 70);
CREATE INDEX runs_seen ON runs (seen)
  WHERE NOT keep AND cancelled IS NULL AND lapsed IS NULL AND closed IS NULL;
CREATE INDEX runs_unsettled ON runs (id) WHERE cancelled IS NOT NULL AND NOT settled;
CREATE INDEX runs_login ON runs (login, made);

CREATE SEQUENCE seqs;
CREATE SEQUENCE tokens;

-- Jobs that are not over.
CREATE TABLE jobs (
  id uuid PRIMARY KEY,
  seq bigint NOT NULL,            -- the order in a line
  run uuid NOT NULL REFERENCES runs,
  login text NOT NULL,
  queue bigint NOT NULL REFERENCES queues,
  kind text NOT NULL,             -- run, measure, race, build
  band smallint NOT NULL,         -- 0: urgent, 1: normal, 2: batch
  after uuid[] NOT NULL,          -- jobs of the run that must be done first
  payload jsonb NOT NULL,
  limit_s double precision NOT NULL,
  n int NOT NULL,                 -- items; 0: the job has no parts
  next int NOT NULL DEFAULT 0,    -- results 0 .. next-1 are there
  losses int NOT NULL DEFAULT 0,
  state text NOT NULL,            -- waiting, ready, leased
  token bigint,
  device bigint,
  place smallint,                 -- of the jobs of a lease, the lowest runs first
  ready_at timestamptz NOT NULL,  -- since when it waits for a device
  signature text,
  key text,                       -- of the task or package: a device that has it loaded is quicker
  CHECK (next <= n AND num_nulls(token, device, place) = CASE state WHEN 'leased' THEN 0 ELSE 3 END)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE jobs ALTER COLUMN payload SET STORAGE EXTENDED;
-- Packed once and unpacked a few times: LZ4 does it in a fraction of the time, where the server was
-- built with it.
DO $$
BEGIN
  ALTER TABLE jobs ALTER COLUMN payload SET COMPRESSION lz4;
EXCEPTION
  WHEN feature_not_supported THEN NULL;
END $$;
CREATE INDEX jobs_ready ON jobs (queue, band, login, seq) WHERE state = 'ready';
CREATE INDEX jobs_leased ON jobs (device, token) WHERE state = 'leased';
CREATE INDEX jobs_urgent ON jobs (login) WHERE state = 'leased' AND band = 0;
CREATE INDEX jobs_waiting ON jobs (run) WHERE state = 'waiting';
CREATE INDEX jobs_run ON jobs (run);
CREATE INDEX jobs_login ON jobs (login) WHERE state <> 'leased';

-- Jobs that are over, without their payload. Only retention removes any.
CREATE TABLE ended (
  id uuid PRIMARY KEY,
  seq bigint NOT NULL,
  run uuid NOT NULL,
  login text NOT NULL,
  queue bigint NOT NULL,
  kind text NOT NULL,
  band smallint NOT NULL,
  after uuid[] NOT NULL,
  limit_s double precision NOT NULL,
  n int NOT NULL,
  next int NOT NULL,
  losses int NOT NULL,
  state text NOT NULL,            -- done, failed, dead, cancelled
  reason text NOT NULL,
  token bigint,                   -- under which it ended, if it was leased then
  device bigint,
  worker uuid,
  ended timestamptz NOT NULL,
  CHECK (state <> 'done' OR next = n)
);
CREATE INDEX ended_run ON ended (run);
CREATE INDEX ended_at ON ended USING brin (ended);

-- What came of each item, until the run is closed.
CREATE TABLE results (
  job uuid NOT NULL,
  item int NOT NULL,
  token bigint NOT NULL,
  outcome text NOT NULL,
  reason text NOT NULL,
  cost double precision,
  least double precision,
  spread double precision,
  fastest double precision,
  readings bigint,
  output jsonb,
  at timestamptz NOT NULL,
  device bigint,                  -- these two of an emulated device only: it makes no records, but
  same bytea,                     -- its times are compared with other devices' all the same
  PRIMARY KEY (job, item)
);
CREATE INDEX results_same ON results (same) WHERE same IS NOT NULL;

-- What was posted under a lease that was over: it may overlap another's.
CREATE TABLE late (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  job uuid NOT NULL,
  token bigint NOT NULL,
  device bigint NOT NULL,
  worker uuid NOT NULL,
  from_item int NOT NULL,
  results jsonb NOT NULL
);

-- An item that ran when a lease was lost: a row per lease.
CREATE TABLE suspects (
  job uuid NOT NULL,
  item int NOT NULL,
  device bigint NOT NULL,
  token bigint NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (job, item, token)
);

-- Measurements and decisions; the columns up to "when" are those of a record in the program.
CREATE TABLE records (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  workload text NOT NULL,
  name text NOT NULL,
  kind text NOT NULL,
  target text NOT NULL,
  machine text NOT NULL,
  compiler text NOT NULL,
  point text NOT NULL,
  schedule text NOT NULL,
  outcome text NOT NULL,
  reason text NOT NULL,
  cost double precision NOT NULL,
  unit text NOT NULL,
  least double precision NOT NULL,
  spread double precision NOT NULL,
  readings bigint NOT NULL,
  searcher text NOT NULL,
  seed bigint NOT NULL,
  "when" text NOT NULL,
  login text NOT NULL,
  job uuid,
  item int,
  token bigint,
  worker uuid,
  device bigint,
  class text,
  trust smallint NOT NULL DEFAULT 0,  -- 1: a second device of the class agrees
  same bytea NOT NULL,                -- half a sha256 of what was measured
  identity bigint NOT NULL,           -- a hash of what tells such measurements apart
  made timestamptz NOT NULL DEFAULT clock_timestamp(),
  UNIQUE (same, identity)             -- also finds what has the same `same`
);
CREATE INDEX records_cost ON records (workload, target, cost);
CREATE INDEX records_trusted ON records (device) WHERE trust > 0;
CREATE UNIQUE INDEX records_item ON records (job, item) WHERE job IS NOT NULL;

-- Two devices of a class measured the same candidate: a row for each of the two. `ratio`: the
-- natural logarithm of its cost over the other's. The last ten of a device are kept, and the last
-- three with each other one. `fresh`: tick() has not judged by it yet.
CREATE TABLE pairs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  device bigint NOT NULL REFERENCES devices ON DELETE CASCADE,
  other bigint NOT NULL REFERENCES devices ON DELETE CASCADE,
  ratio double precision NOT NULL,
  fresh boolean NOT NULL DEFAULT true
);
CREATE INDEX pairs_device ON pairs (device, id);
CREATE INDEX pairs_fresh ON pairs (device) WHERE fresh;

CREATE TABLE workloads (
  key text PRIMARY KEY,
  func text NOT NULL,
  shape_hash text,
  numbers double precision[]
);
CREATE INDEX workloads_shape ON workloads (shape_hash) WHERE shape_hash IS NOT NULL;

-- Files by their content, in parts of 1 MiB. They are shared inside a login only: else a hash would
-- tell who has a model.
CREATE TABLE blobs (
  login text NOT NULL REFERENCES logins,
  sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'),
  bytes bigint NOT NULL CHECK (bytes >= 0),
  parts int NOT NULL CHECK (parts >= 1),
  whole boolean NOT NULL DEFAULT false,
  used timestamptz NOT NULL,
  PRIMARY KEY (login, sha256)
);
CREATE TABLE blob_parts (
  login text NOT NULL,
  sha256 text NOT NULL,
  part int NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (login, sha256, part),
  FOREIGN KEY (login, sha256) REFERENCES blobs ON DELETE CASCADE
);
ALTER TABLE blob_parts ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE job_blobs (
  job uuid NOT NULL,
  login text NOT NULL,
  sha256 text NOT NULL,
  name text NOT NULL,
  output boolean NOT NULL DEFAULT false,  -- made by the job, not read by it
  PRIMARY KEY (job, name, output),
  FOREIGN KEY (login, sha256) REFERENCES blobs
);
CREATE INDEX job_blobs_blob ON job_blobs (login, sha256);

-- What happened, written in the transaction that did it. `claimed` once per job of a lease, `freed`
-- once per lease, with its seconds.
CREATE TABLE events (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL,
  what text NOT NULL,
  job uuid,
  token bigint,
  device bigint,
  worker uuid,
  login text,
  seconds double precision,
  note text NOT NULL DEFAULT ''
);
CREATE INDEX events_at ON events USING brin (at);

INSERT INTO pools (pool) VALUES ('default');
INSERT INTO ticks (last) VALUES (clock_timestamp());
INSERT INTO meta (version, min_program, epoch, timeline, lease_s, run_s)
  VALUES (1, '0.1', 1, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int,
          30, 120);
