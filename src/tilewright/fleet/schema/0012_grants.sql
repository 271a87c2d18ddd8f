-- Who may call what. Whatever is not named here is for the owner alone.

SET LOCAL search_path = fleet, pg_temp;

REVOKE ALL ON ALL TABLES IN SCHEMA fleet FROM PUBLIC, tw_user, tw_worker, tw_monitor;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA fleet FROM PUBLIC, tw_user, tw_worker, tw_monitor;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA fleet FROM PUBLIC, tw_user, tw_worker, tw_monitor;

-- PostgreSQL has a version() of its own, which would be found first.
GRANT EXECUTE ON FUNCTION fleet.version(), tick(), check_server(), devices()
  TO tw_user, tw_worker, tw_monitor;

GRANT EXECUTE ON FUNCTION
    new_run(uuid, text, boolean), submit(uuid, jsonb), submit_run(uuid, text, jsonb),
    look(uuid, jsonb), cancel(uuid), close_run(uuid), blob_state(text), blobs_whole(text[]),
    blob_begin(text, bigint, int), blob_put(text, int, bytea), blob_finish(text),
    blob_check(text), blob_get(text, int), records_add(jsonb, jsonb),
    records_page(text, text, text, text, boolean, bigint, int, text),
    records_count(text, text, text, text, boolean, text),
    records_best(text, text, text, text, boolean, text),
    records_last(text, text, text, text, boolean, text), workload_text(text),
    workloads_page(text, int), records_prune(int), hold(text, double precision), release_hold(text),
    who(text), status()
  TO tw_user;

GRANT EXECUTE ON FUNCTION
    enroll(text, text, text, text, text, jsonb), claim(uuid, text, bigint, int, text[]),
    renew(uuid, text, bigint, bigint), post(uuid, text, bigint, uuid, bigint, int, jsonb, text),
    give_back(uuid, text, bigint, bigint), leave(uuid, text),
    worker_blob_get(uuid, text, bigint, bigint, uuid, text, int),
    worker_blob_put(uuid, text, bigint, bigint, uuid, text, bigint, int, int, bytea)
  TO tw_worker;

GRANT EXECUTE ON FUNCTION who(text), status(), log(bigint, int), last_events(int), metrics()
  TO tw_monitor;

GRANT SELECT ON my_runs, my_jobs, my_results TO tw_user;
GRANT SELECT ON queue_counts TO tw_user, tw_monitor;
GRANT SELECT ON share_list TO tw_monitor;
