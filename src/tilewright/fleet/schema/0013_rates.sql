-- Measured rates of classes: who makes code for a class that is not his machine's asks for them.

SET LOCAL search_path = fleet, pg_temp;

-- What a worker's machine measured, for the class of a device that it serves; the newest stays.
-- errors: TW400, TW403, TW404.
CREATE FUNCTION offer_rates(worker uuid, secret text, device bigint, rates jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = fleet, pg_temp AS $$
DECLARE
  w workers := known_worker(worker, secret);
BEGIN
  IF jsonb_typeof(offer_rates.rates) IS DISTINCT FROM 'object' OR
     octet_length(offer_rates.rates::text) > 65536 THEN
    PERFORM refuse('TW400', 'rates are an object of at most 64 KiB');
  END IF;
  UPDATE classes c SET rates = offer_rates.rates
    FROM devices d JOIN reaches r ON r.device = d.id AND r.worker = w.id
    WHERE d.id = offer_rates.device AND c.class = d.class;
  IF NOT FOUND THEN
    PERFORM refuse('TW404', 'this worker serves no such device');
  END IF;
END $$;

-- NULL: nobody has measured it.
CREATE FUNCTION class_rates(class text) RETURNS jsonb LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = fleet, pg_temp AS $$
BEGIN
  PERFORM caller('user', 'worker', 'monitor');
  RETURN (SELECT c.rates FROM classes c WHERE c.class = class_rates.class AND c.rates <> '{}');
END $$;

REVOKE ALL ON FUNCTION offer_rates(uuid, text, bigint, jsonb), class_rates(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION offer_rates(uuid, text, bigint, jsonb) TO tw_worker;
GRANT EXECUTE ON FUNCTION class_rates(text) TO tw_user, tw_worker, tw_monitor;
