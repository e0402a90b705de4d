-- The outbox of a backend with PostgreSQL. Every change of the table reports makes an event in the same transaction. Of each
-- subject the outbox keeps the last state, also of rows that were deleted: that is all that publishing everything again takes.
CREATE TABLE outbox (
  subject  text PRIMARY KEY,
  revision bigint NOT NULL,
  type     text NOT NULL,
  data     jsonb NOT NULL,
  time     timestamptz NOT NULL,
  state    text NOT NULL DEFAULT 'new' -- then 'sent', or why the registry refuses it; a worker in SQL says 'sending'
);

CREATE VIEW unsent AS SELECT subject, revision, json_build_object('specversion', '1.0', 'id', subject || '@' || revision,
  'source', 'https://moderation.example/panel', 'type', type, 'time', to_char(time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  'data', data || jsonb_build_object('revision', revision))::text AS event
FROM outbox WHERE state IN ('new', 'sending');

CREATE FUNCTION enqueue(type text, list text, id text, state jsonb) RETURNS void LANGUAGE sql AS $$
  INSERT INTO outbox AS o (subject, revision, type, data, time)
  VALUES ('registry.' || list || '.' || id, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 'registry.entry.' || type,
    jsonb_build_object('list', list, 'entryId', id) || state, clock_timestamp())
  ON CONFLICT (subject) DO UPDATE SET revision = greatest(o.revision + 1, excluded.revision),
    type = excluded.type, data = excluded.data, time = excluded.time, state = 'new';
$$;

CREATE FUNCTION report_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (OLD.list, OLD.id) IS DISTINCT FROM (NEW.list, NEW.id) THEN
    PERFORM enqueue('delisted', OLD.list, OLD.id::text, '{}');
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM enqueue(CASE TG_OP WHEN 'INSERT' THEN 'listed' ELSE 'amended' END, NEW.list, NEW.id::text, jsonb_build_object(
      'chatId', NEW.chat_id, 'name', NEW.name, 'reason', NEW.reason, 'verified', NEW.verified, 'proofs', jsonb_build_object(
        'id', CASE WHEN NOT NEW.proofs_private THEN NEW.proofs_id END, 'private', NEW.proofs_private), 'reportId', NEW.report_id,
      'reportedAt', to_char(NEW.reported_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER report_changed AFTER INSERT OR UPDATE OR DELETE ON reports FOR EACH ROW EXECUTE FUNCTION report_changed();

UPDATE reports SET id = id; -- once: the first import
