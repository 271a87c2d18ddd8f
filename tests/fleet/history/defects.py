"""Defects that the checker must find: the schema's sources with a piece of text changed.

Each names its patches and the rules whose violation counts as found. A patch whose text is not there exactly once is
an error: the schema has changed and the defect would plant nothing. Example: gap_accepted puts `false` in place of
`from_item > j.next` in the function `take`; an agent leaves out item 3, the job is `done` without it, and rule 6 says
so.
"""


class Patch:
    """`old` becomes `new` in the function (or table) `name` of the schema."""

    def __init__(self, name, old, new):
        self.name, self.old, self.new = name, old, new

    def applied(self, text):
        """errors: ValueError if the text is not there just once."""
        begin, end = span(text, self.name)
        part = text[begin:end]
        if part.count(self.old) != 1:
            raise ValueError(f"{self.name} has {part.count(self.old)} times the text\n{self.old}")
        return text[:begin] + part.replace(self.old, self.new) + text[end:]


class Defect:
    """`what`: for people. `rules`: of checker.py, and `signs`: texts of which one is in a violation that counts.
    `extra`: SQL that runs after the schema's files."""

    def __init__(self, what, rules, signs, patches, extra=""):
        self.what, self.rules, self.signs, self.patches = what, tuple(str(r) for r in rules), signs, patches
        self.extra = extra

    def shows_in(self, violation):
        return str(violation["rule"]) in self.rules and any(sign in violation["text"] for sign in self.signs)


def definition(name):
    return (f"CREATE FUNCTION {name}(", f"CREATE TABLE {name} (", f"CREATE UNIQUE INDEX {name} ")


def span(text, name):
    """Where the definition of a function, table or index begins and ends in a file."""
    begin = next(text.index(start) for start in definition(name) if start in text)
    end = text.index("$$;" if text.startswith("CREATE FUNCTION", begin) else ";", begin)
    return begin, end + 3


DEFECTS = {
    "no_token_check": Defect(
        "post believes any token", (5,), ("accepted", "sent by nobody"),
        [Patch("post", "d := leased_under(w, device, token);",
               "SELECT * INTO d FROM devices v WHERE v.id = post.device FOR NO KEY UPDATE;")]),
    "async_claim": Defect(
        "claim does not wait for the disk", (2,), ("no event tells of it", "given twice"),
        [Patch("claim", "BEGIN\n", "BEGIN\n  PERFORM set_config('synchronous_commit', 'off', true);\n")]),
    "clock_not_moved": Defect(
        "tick does not move leases when the clock has stepped", ("time", "idle"), ("ended by time", "did not end"),
        [Patch("tick", "IF past < 0 OR past > 5 THEN", "IF false THEN")]),
    "results_without_key": Defect(
        "a repeated post stores its items again", (4,), ("results", "records"),
        [Patch("results", "PRIMARY KEY (job, item)", "CHECK (true)"),
         Patch("records_item", "CREATE UNIQUE INDEX", "CREATE INDEX"),
         Patch("store_results", " WHERE r.item >= job.next),", "),")]),
    "cancel_revives": Defect(
        "a cancelled run's job whose lease ends is ready again", (6,), ("its run was cancelled",),
        [Patch("end_lease", "IF gone THEN", "IF false THEN"),
         Patch("end_lost_runs", "WHERE v.cancelled IS NOT NULL AND", "WHERE false AND"),
         Patch("pick", "IF gone IS NOT NULL THEN", "ids := ids || gone;\n  IF false THEN")]),
    "look_by_id": Defect(
        "look pages by id > last", ("look",), ("asked from", "submitter saw"),
        [Patch("results", "  output jsonb,\n", "  output jsonb,\n  id bigint GENERATED ALWAYS AS IDENTITY,\n"),
         Patch("look", "  its runs := ", "  last bigint;\n  its runs := "),
         Patch("look", "  -- One statement, so one view",
               "  SELECT max(r.id) INTO last FROM results r WHERE r.item < (wanted->>(r.job::text))::int;\n"
               "  -- One statement, so one view"),
         Patch("look", "results_of(f.id, coalesce((wanted->>(f.id::text))::int, 0))",
               "results_after(f.id, coalesce(last, 0))")],
        """CREATE FUNCTION results_after(job uuid, last bigint) RETURNS jsonb LANGUAGE sql STABLE AS $$
             SELECT coalesce(jsonb_agg(jsonb_build_object('item', r.item, 'outcome', r.outcome, 'cost', r.cost)
                                       ORDER BY r.item), '[]')
             FROM results r WHERE r.job = results_after.job AND r.id > last $$;"""),
    "times_in_claim": Defect(
        "claim takes a device whose lease's end has passed", (3,), ("held it",),
        [Patch("claim", "ELSIF d.state <> 'free' THEN",
               "ELSIF d.state <> 'free' AND NOT coalesce(d.ends < clock_timestamp(), false) THEN")]),
    "gap_accepted": Defect(
        "post takes items behind a gap", (6,), ("has results", "done with"),
        [Patch("take", "ELSIF from_item > j.next THEN", "ELSIF false THEN")]),
    "records_outside": Defect(
        "records are put aside, without the log, and stored by the next tick", (4,), ("0 records", "record of"),
        [Patch("make_records", "INSERT INTO records (", "INSERT INTO stash ("),
         Patch("tick", "PERFORM fold_usage();",
               "PERFORM fold_usage(); PERFORM add_record(jsonb_populate_record(NULL::records, to_jsonb(s))) "
               "FROM stash s; DELETE FROM stash;")],
        "CREATE UNLOGGED TABLE stash (LIKE records INCLUDING DEFAULTS INCLUDING IDENTITY);"),
    "token_per_worker": Defect(
        "a worker has one token for all its leases", (2,), ("second lease", "given twice"),
        [Patch("claim", "next_token(m.epoch)", "(m.epoch << 40) + (hashtext(w.id::text) & 1073741823)"),
         Patch("usage", "token bigint PRIMARY KEY,", "token bigint,"),
         Patch("suspects", "PRIMARY KEY (job, item, token)", "CHECK (true)")]),
    "no_blob_check": Defect(
        "a worker reads blobs that its job does not name", (7,), ("does not name",),
        [Patch("worker_blob_get", "IF NOT EXISTS (", "IF false AND NOT EXISTS (")]),
    "usage_twice": Defect(
        "a lost lease is paid twice", (9,), ("2 rows of usage",),
        [Patch("usage", "token bigint PRIMARY KEY,", "token bigint,"),
         Patch("free_device", "  IF doubtful THEN\n",
               "  INSERT INTO usage SELECT * FROM usage u WHERE u.token = d.token AND how = 'lost';\n"
               "  IF doubtful THEN\n")]),
    "hash_not_compared": Defect(
        "a damaged blob is declared whole", (7,), ("other bytes",),
        [Patch("finish_blob", "IF found <> b.sha256 THEN", "IF false THEN")]),
}


def planted(name, files):
    """The files [(name, text)] with the defect in them. errors: ValueError if a patch does not fit."""
    defect, texts = DEFECTS[name], dict(files)
    for patch in defect.patches:
        holding = [file for file, text in texts.items() if any(start in text for start in definition(patch.name))]
        if len(holding) != 1:
            raise ValueError(f"defect {name}: {patch.name} is defined in {holding}, not in one file")
        texts[holding[0]] = patch.applied(texts[holding[0]])
    files = [(file, texts[file]) for file, _ in files]
    if defect.extra:
        files.append(("extra.sql", "SET LOCAL search_path = fleet, pg_temp;\n" + defect.extra))
    return files
