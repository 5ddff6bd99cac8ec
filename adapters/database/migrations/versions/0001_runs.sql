CREATE OR REPLACE FUNCTION runs_follow_batches() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM runs WHERE id = (SELECT concat('batch/', own.case_id, '/', own.batch_id) FROM (SELECT OLD.*) AS own);
  ELSE
    INSERT INTO runs (title, reason, project, owner, organisation_id, size, counts, links, id, pipeline, kind, key, short, state, own_state, answers_at, created_at, changed_at, ended_at, needs_attention)
    SELECT *, mapped.state = 'needs_attention' FROM (SELECT
      CAST(NULL AS TEXT) AS title,
      CASE WHEN (own.loader_status IN ('waiting', 'processing') AND own.attention IS NOT NULL) THEN own.attention ELSE own.reason END AS reason,
      CAST(NULL AS TEXT) AS project,
      CAST(NULL AS TEXT) AS owner,
      CAST(NULL AS BIGINT) AS organisation_id,
      CAST(NULL AS BIGINT) AS size,
      jsonb_strip_nulls(jsonb_build_object('documents', nullif(own.job_documents, 0), 'dead_letters', nullif(own.dead_letters, 0))) AS counts,
      CAST('{}' AS JSONB) AS links,
      concat('batch/', own.case_id, '/', own.batch_id) AS id,
      'batches' AS pipeline,
      'batch' AS kind,
      concat('batch/', own.case_id, '/', own.batch_id) AS key,
      concat('batch/', own.case_id, '/', own.batch_id) AS short,
      CASE WHEN (own.loader_status IN ('waiting', 'processing') AND own.attention IS NOT NULL) THEN 'needs_attention' ELSE CASE WHEN (own.loader_status = 'waiting') THEN 'waiting' WHEN (own.loader_status = 'processing') THEN 'running' WHEN (own.loader_status = 'complete') THEN CASE WHEN (own.dead_letters > 0) THEN 'completed_with_problems' ELSE 'completed' END WHEN (own.loader_status = 'in-complete') THEN 'completed_with_problems' WHEN (own.loader_status = 'cancelled') THEN 'cancelled' WHEN (own.loader_status = 'failed') THEN 'failed' WHEN (own.loader_status = 'skipped') THEN 'skipped' WHEN (own.loader_status = 'terminated') THEN 'cancelled' END END AS state,
      own.loader_status AS own_state,
      concat('batch/', own.case_id, '/', own.batch_id) AS answers_at,
      own.created_at AS created_at,
      own.updated_at AS changed_at,
      CASE WHEN ((own.loader_status NOT IN ('waiting', 'processing'))) THEN own.loader_status_updated_at END AS ended_at
      FROM (SELECT NEW.*) AS own) AS mapped
    ON CONFLICT (id) DO UPDATE SET
      title = excluded.title,
      reason = excluded.reason,
      project = excluded.project,
      owner = excluded.owner,
      organisation_id = excluded.organisation_id,
      size = excluded.size,
      counts = excluded.counts,
      links = excluded.links,
      pipeline = excluded.pipeline,
      kind = excluded.kind,
      key = excluded.key,
      short = excluded.short,
      state = excluded.state,
      own_state = excluded.own_state,
      answers_at = excluded.answers_at,
      changed_at = excluded.changed_at,
      ended_at = excluded.ended_at,
      needs_attention = excluded.needs_attention,
      waits_for = excluded.waits_for,
      revision = excluded.revision;
  END IF;
  RETURN NULL;
END
$$
;;
CREATE OR REPLACE TRIGGER runs_follow_batches AFTER INSERT OR UPDATE OR DELETE ON batches
FOR EACH ROW EXECUTE FUNCTION runs_follow_batches()
;;
CREATE OR REPLACE FUNCTION runs_follow_import_tasks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM runs WHERE id = (SELECT own.workflow_id FROM (SELECT OLD.*) AS own);
  ELSE
    INSERT INTO runs (title, reason, project, owner, organisation_id, size, counts, links, id, pipeline, kind, key, short, state, own_state, answers_at, created_at, changed_at, ended_at, needs_attention)
    SELECT *, mapped.state = 'needs_attention' FROM (SELECT
      coalesce(own.filename, own.source_name) AS title,
      coalesce(own.reason, own.note) AS reason,
      own.project_id AS project,
      CAST(NULL AS TEXT) AS owner,
      CAST(NULL AS BIGINT) AS organisation_id,
      CAST(NULL AS BIGINT) AS size,
      jsonb_strip_nulls(jsonb_build_object('created', nullif(own.created, 0), 'updated', nullif(own.updated, 0), 'unchanged', nullif(own.unchanged, 0), 'rejected', nullif(own.rejected, 0), 'deleted', nullif(own.deleted, 0), 'flagged', nullif(own.flagged, 0), 'problems', nullif(own.problem_count, 0))) AS counts,
      jsonb_strip_nulls(jsonb_build_object('report', CAST(own.report AS JSONB) ->> 'name')) AS links,
      own.workflow_id AS id,
      'imports' AS pipeline,
      own.document_type AS kind,
      substr(own.workflow_id, 8) AS key,
      own.task_id AS short,
      CASE WHEN (own.state = 'running') THEN 'running' WHEN (own.state = 'parked') THEN 'needs_attention' WHEN (own.state = 'completed') THEN CASE WHEN (own.problem_count > 0) THEN 'completed_with_problems' ELSE 'completed' END WHEN (own.state = 'skipped') THEN 'skipped' WHEN (own.state = 'failed') THEN 'failed' WHEN (own.state = 'cancelled') THEN 'cancelled' WHEN (own.state = 'terminated') THEN 'cancelled' END AS state,
      own.state AS own_state,
      own.workflow_id AS answers_at,
      own.created_at AS created_at,
      own.updated_at AS changed_at,
      CASE WHEN (own.state IN ('completed', 'skipped', 'failed', 'cancelled', 'terminated')) THEN coalesce(own.finished_at, own.updated_at) END AS ended_at
      FROM (SELECT NEW.*) AS own) AS mapped
    ON CONFLICT (id) DO UPDATE SET
      title = excluded.title,
      reason = excluded.reason,
      project = excluded.project,
      owner = excluded.owner,
      organisation_id = excluded.organisation_id,
      size = excluded.size,
      counts = excluded.counts,
      links = excluded.links,
      pipeline = excluded.pipeline,
      kind = excluded.kind,
      key = excluded.key,
      short = excluded.short,
      state = excluded.state,
      own_state = excluded.own_state,
      answers_at = excluded.answers_at,
      changed_at = excluded.changed_at,
      ended_at = excluded.ended_at,
      needs_attention = excluded.needs_attention,
      waits_for = excluded.waits_for,
      revision = excluded.revision;
  END IF;
  RETURN NULL;
END
$$
;;
CREATE OR REPLACE TRIGGER runs_follow_import_tasks AFTER INSERT OR UPDATE OR DELETE ON import_tasks
FOR EACH ROW EXECUTE FUNCTION runs_follow_import_tasks()
;;
CREATE OR REPLACE FUNCTION runs_follow_jobs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM runs WHERE id = (SELECT 'job/' || own.job_id FROM (SELECT OLD.*) AS own);
  ELSE
    INSERT INTO runs (title, reason, project, owner, organisation_id, size, counts, links, id, pipeline, kind, key, short, state, own_state, answers_at, created_at, changed_at, ended_at, needs_attention)
    SELECT *, mapped.state = 'needs_attention' FROM (SELECT
      CAST(NULL AS TEXT) AS title,
      own.error_details AS reason,
      own.project AS project,
      CAST(NULL AS TEXT) AS owner,
      own.organisation_id AS organisation_id,
      CAST((SELECT sum(CAST(CAST(anon_1.value AS TEXT) AS NUMERIC)) AS sum_1 
FROM jsonb_array_elements(jsonb_path_query_array(own.stage_results, '$.*."bytes" ? (@.type() == "number" && @ >= 0 && @ <= 1000000000000000)')) AS anon_1) AS BIGINT) AS size,
      jsonb_strip_nulls(jsonb_build_object('stage', nullif(own.stage, 0), 'total_stages', nullif(own.total_stages, 0), 'failed_tasks', nullif(own.failed_count, 0), 'rows', nullif(CAST((SELECT sum(CAST(CAST(anon_1.value AS TEXT) AS NUMERIC)) AS sum_1 
FROM jsonb_array_elements(jsonb_path_query_array(own.stage_results, '$.*."rows" ? (@.type() == "number" && @ >= 0 && @ <= 1000000000000000)')) AS anon_1) AS BIGINT), 0))) AS counts,
      CAST('{}' AS JSONB) AS links,
      'job/' || own.job_id AS id,
      'jobs' AS pipeline,
      own.job_type AS kind,
      own.job_id AS key,
      coalesce(own.alias, own.job_id) AS short,
      CASE WHEN (own.status = 'QUEUED') THEN 'waiting' WHEN (own.status = 'PROCESSING') THEN 'running' WHEN (own.status = 'PARKED') THEN 'needs_attention' WHEN (own.status = 'COMPLETED') THEN CASE WHEN (own.failed_count > 0) THEN 'completed_with_problems' ELSE 'completed' END WHEN (own.status = 'FAILED') THEN 'failed' WHEN (own.status = 'CANCELLED') THEN 'cancelled' WHEN (own.status = 'TERMINATED') THEN 'cancelled' END AS state,
      own.status AS own_state,
      'job/' || own.job_id AS answers_at,
      own.created_at AS created_at,
      own.updated_at AS changed_at,
      CASE WHEN ((own.status NOT IN ('QUEUED', 'PROCESSING', 'PARKED'))) THEN own.updated_at END AS ended_at
      FROM (SELECT NEW.*) AS own) AS mapped
    ON CONFLICT (id) DO UPDATE SET
      title = excluded.title,
      reason = excluded.reason,
      project = excluded.project,
      owner = excluded.owner,
      organisation_id = excluded.organisation_id,
      size = excluded.size,
      counts = excluded.counts,
      links = excluded.links,
      pipeline = excluded.pipeline,
      kind = excluded.kind,
      key = excluded.key,
      short = excluded.short,
      state = excluded.state,
      own_state = excluded.own_state,
      answers_at = excluded.answers_at,
      changed_at = excluded.changed_at,
      ended_at = excluded.ended_at,
      needs_attention = excluded.needs_attention,
      waits_for = excluded.waits_for,
      revision = excluded.revision;
  END IF;
  RETURN NULL;
END
$$
;;
CREATE OR REPLACE TRIGGER runs_follow_jobs AFTER INSERT OR UPDATE OR DELETE ON app.jobs
FOR EACH ROW EXECUTE FUNCTION runs_follow_jobs()
;;
CREATE OR REPLACE FUNCTION runs_follow_spreadsheet_imports() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM runs WHERE id = (SELECT own.workflow_id FROM (SELECT OLD.*) AS own);
  ELSE
    INSERT INTO runs (title, reason, project, owner, organisation_id, size, counts, links, id, pipeline, kind, key, short, state, own_state, answers_at, created_at, changed_at, ended_at, needs_attention)
    SELECT *, mapped.state = 'needs_attention' FROM (SELECT
      own.filename AS title,
      CASE WHEN (own.undo_state = 'RUNNING' AND own.undo_reason IS NOT NULL) THEN 'undo: ' || own.undo_reason ELSE own.reason END AS reason,
      CAST(NULL AS TEXT) AS project,
      own.by AS owner,
      own.organisation_id AS organisation_id,
      CAST(CAST(own.source AS JSONB) ->> 'size' AS BIGINT) AS size,
      jsonb_strip_nulls(jsonb_build_object('rows', nullif(own.total, 0), 'created', nullif(own.created, 0), 'updated', nullif(own.updated, 0), 'skipped', nullif(own.skipped, 0), 'error', nullif(own.error, 0), 'parked', nullif(own.parked, 0), 'open_values', nullif(own.open_values, 0))) AS counts,
      jsonb_strip_nulls(jsonb_build_object('report', CAST(own.report AS JSONB) ->> 'name')) AS links,
      own.workflow_id AS id,
      'spreadsheets' AS pipeline,
      own.import_type AS kind,
      own.uuid AS key,
      own.uuid AS short,
      CASE WHEN (own.undo_state = 'RUNNING') THEN CASE WHEN (own.undo_reason IS NOT NULL) THEN 'needs_attention' ELSE 'running' END ELSE CASE WHEN (own.state = 'UPLOADED') THEN CASE WHEN (own.waiting_since IS NOT NULL) THEN 'needs_attention' ELSE 'running' END WHEN (own.state = 'COLUMN_MAPPING') THEN CASE WHEN (own.waiting_since IS NOT NULL) THEN 'needs_attention' ELSE 'running' END WHEN (own.state = 'CELL_MAPPING') THEN CASE WHEN (own.waiting_since IS NOT NULL) THEN 'needs_attention' ELSE 'running' END WHEN (own.state = 'PROCESSING') THEN CASE WHEN (own.waiting_since IS NOT NULL) THEN 'needs_attention' ELSE 'running' END WHEN (own.state = 'COMPLETED') THEN CASE WHEN (own.error + own.parked > 0) THEN 'completed_with_problems' ELSE 'completed' END WHEN (own.state = 'FAILED') THEN 'failed' WHEN (own.state = 'CANCELLED') THEN 'cancelled' WHEN (own.state = 'TERMINATED') THEN 'cancelled' END END AS state,
      own.state AS own_state,
      CASE WHEN (own.undo_state = 'RUNNING') THEN 'spreadsheet-undo/' || own.uuid ELSE own.workflow_id END AS answers_at,
      own.created_at AS created_at,
      own.updated_at AS changed_at,
      CASE WHEN (own.undo_state = 'RUNNING') THEN NULL WHEN (own.state IN ('CANCELLED', 'COMPLETED', 'FAILED', 'TERMINATED')) THEN coalesce(own.finished_at, own.updated_at) END AS ended_at
      FROM (SELECT NEW.*) AS own) AS mapped
    ON CONFLICT (id) DO UPDATE SET
      title = excluded.title,
      reason = excluded.reason,
      project = excluded.project,
      owner = excluded.owner,
      organisation_id = excluded.organisation_id,
      size = excluded.size,
      counts = excluded.counts,
      links = excluded.links,
      pipeline = excluded.pipeline,
      kind = excluded.kind,
      key = excluded.key,
      short = excluded.short,
      state = excluded.state,
      own_state = excluded.own_state,
      answers_at = excluded.answers_at,
      changed_at = excluded.changed_at,
      ended_at = excluded.ended_at,
      needs_attention = excluded.needs_attention,
      waits_for = excluded.waits_for,
      revision = excluded.revision;
  END IF;
  RETURN NULL;
END
$$
;;
CREATE OR REPLACE TRIGGER runs_follow_spreadsheet_imports AFTER INSERT OR UPDATE OR DELETE ON spreadsheet_imports
FOR EACH ROW EXECUTE FUNCTION runs_follow_spreadsheet_imports()
;;
CREATE OR REPLACE FUNCTION runs_follow_transfers() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    DELETE FROM runs WHERE id = (SELECT 'transfer/' || own.transfer_id FROM (SELECT OLD.*) AS own);
  ELSE
    INSERT INTO runs (title, reason, project, owner, organisation_id, size, counts, links, id, pipeline, kind, key, short, state, own_state, answers_at, created_at, changed_at, ended_at, needs_attention)
    SELECT *, mapped.state = 'needs_attention' FROM (SELECT
      coalesce(own.file, own.subject) AS title,
      regexp_replace(own.reason, '^parked: ', '') AS reason,
      own.account_id AS project,
      CAST(NULL AS TEXT) AS owner,
      own.organisation_id AS organisation_id,
      own.size AS size,
      CAST('{}' AS JSONB) AS counts,
      jsonb_strip_nulls(jsonb_build_object('receipt', CAST(own.receipt AS JSONB) ->> 'name')) AS links,
      'transfer/' || own.transfer_id AS id,
      'transfers' AS pipeline,
      coalesce(own.queue, 'event') AS kind,
      own.transfer_id AS key,
      own.transfer_id AS short,
      CASE WHEN (own.status = 'ReadMessage') THEN CASE WHEN (left(own.reason, 8) = 'parked: ') THEN 'needs_attention' ELSE 'running' END WHEN (own.status = 'Assigned') THEN 'running' WHEN (own.status = 'NoAssigned') THEN 'needs_attention' WHEN (own.status = 'Succeeded') THEN 'completed' WHEN (own.status = 'Failed') THEN 'failed' WHEN (own.status = 'Invalid') THEN 'failed' WHEN (own.status = 'Garbage') THEN 'failed' END AS state,
      own.status AS own_state,
      coalesce(own.run, CASE WHEN (own.status IN ('Invalid', 'Garbage', 'NoAssigned')) THEN 'transfer/' || own.transfer_id ELSE 'transfer/' || own.transfer_id || '/job' END) AS answers_at,
      own.at AS created_at,
      own.at AS changed_at,
      CASE WHEN ((own.status NOT IN ('ReadMessage', 'Assigned', 'NoAssigned'))) THEN own.at END AS ended_at
      FROM (SELECT NEW.*) AS own) AS mapped
    ON CONFLICT (id) DO UPDATE SET
      title = excluded.title,
      reason = excluded.reason,
      project = excluded.project,
      owner = excluded.owner,
      organisation_id = excluded.organisation_id,
      size = excluded.size,
      counts = excluded.counts,
      links = excluded.links,
      pipeline = excluded.pipeline,
      kind = excluded.kind,
      key = excluded.key,
      short = excluded.short,
      state = excluded.state,
      own_state = excluded.own_state,
      answers_at = excluded.answers_at,
      changed_at = excluded.changed_at,
      ended_at = excluded.ended_at,
      needs_attention = excluded.needs_attention,
      waits_for = excluded.waits_for,
      revision = excluded.revision;
  END IF;
  RETURN NULL;
END
$$
;;
CREATE OR REPLACE TRIGGER runs_follow_transfers AFTER INSERT OR UPDATE OR DELETE ON transfers
FOR EACH ROW EXECUTE FUNCTION runs_follow_transfers()
