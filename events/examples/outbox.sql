-- The outbox of a backend with PostgreSQL. Every change of the table reports makes an event in the same transaction. Of each
-- subject the outbox keeps the last state, also of rows that were deleted: that is all that publishing everything again takes.
CREATE TABLE outbox (
  subject  text PRIMARY KEY,
  revision bigint NOT NULL,
  type     text NOT NULL,
  data     jsonb NOT NULL,
  time     timestamptz NOT NULL,
  state    text NOT NULL DEFAULT 'new' -- then 'sent', or why the registry does not take it
);

CREATE VIEW unsent AS SELECT subject, revision, json_build_object('specversion', '1.0', 'id', subject || '@' || revision,
  'source', 'https://moderation.example/panel', 'type', type, 'time', to_char(time AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
  'data', data || jsonb_build_object('revision', revision))::text AS event
FROM outbox WHERE state = 'new';

-- The entry of a row. Ids may be numbers in your table; in an event they are texts.
CREATE FUNCTION entry(r reports) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('list', r.list, 'entryId', r.id::text, 'chatId', r.chat_id::text, 'name', r.name, 'reason', r.reason,
    'verified', r.verified, 'proofs', jsonb_build_object('id', CASE WHEN NOT r.proofs_private THEN r.proofs_id::text END,
    'private', r.proofs_private), 'reportId', r.report_id::text,
    'reportedAt', to_char(r.reported_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
$$;

CREATE FUNCTION enqueue(type text, data jsonb) RETURNS void LANGUAGE sql AS $$
  INSERT INTO outbox AS o (subject, revision, type, data, time)
  VALUES ('registry.' || (data->>'list') || '.' || (data->>'entryId'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    'registry.entry.' || type, CASE type WHEN 'delisted'
    THEN jsonb_build_object('list', data->'list', 'entryId', data->'entryId') ELSE data END, clock_timestamp())
  ON CONFLICT (subject) DO UPDATE SET revision = greatest(o.revision + 1, excluded.revision),
    type = excluded.type, data = excluded.data, time = excluded.time, state = 'new';
$$;

CREATE FUNCTION report_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'DELETE' OR TG_OP = 'UPDATE' AND (OLD.list, OLD.id) IS DISTINCT FROM (NEW.list, NEW.id) THEN
    PERFORM enqueue('delisted', entry(OLD));
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM enqueue(CASE TG_OP WHEN 'INSERT' THEN 'listed' ELSE 'amended' END, entry(NEW));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER report_changed AFTER INSERT OR UPDATE OR DELETE ON reports FOR EACH ROW EXECUTE FUNCTION report_changed();

-- Triggers see no TRUNCATE, no restore that disables them, and nothing under session_replication_role. So the workers call this
-- every minute: it makes the events of all rows and lost rows that differ from the outbox. The first call is the first import.
CREATE FUNCTION reconcile() RETURNS void LANGUAGE plpgsql AS $$ BEGIN
  LOCK TABLE reports IN SHARE ROW EXCLUSIVE MODE; -- nobody changes a row meanwhile
  PERFORM enqueue('delisted', data) FROM outbox o WHERE o.type <> 'registry.entry.delisted'
    AND NOT EXISTS (SELECT FROM reports r WHERE o.subject = 'registry.' || r.list || '.' || r.id);
  PERFORM enqueue('listed', entry(r)) FROM reports r LEFT JOIN outbox o ON o.subject = 'registry.' || r.list || '.' || r.id
    WHERE o.data IS DISTINCT FROM entry(r);
END $$;
SELECT reconcile();
