"""The tables of docflow 0.1.0, and the countries."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR

from adapters.database.models.base import Box
from adapters.database.schema import country_rows, statements_of

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.execute("CREATE SCHEMA IF NOT EXISTS app")
    op.create_table('jobs',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('job_type', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('stage', sa.Integer(), nullable=False),
    sa.Column('total_stages', sa.Integer(), nullable=False),
    sa.Column('parameters', JSONB(), nullable=False),
    sa.Column('stage_results', JSONB(), nullable=False),
    sa.Column('result_data', JSONB(), nullable=False),
    sa.Column('error_details', sa.Text(), nullable=True),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('project', sa.Text(), nullable=True),
    sa.Column('organisation_id', sa.BigInteger(), nullable=True),
    sa.Column('alias', sa.Text(), nullable=True),
    sa.Column('failed_tasks', JSONB(), nullable=False),
    sa.Column('failed_count', sa.BigInteger(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('job_id', name='pk_jobs'),
    schema='app'
    )
    op.create_index('ix_jobs_alias', 'jobs', ['alias'], unique=False, schema='app')
    op.create_index('ix_jobs_job_type_updated_at', 'jobs', ['job_type', 'updated_at'], unique=False, schema='app')
    op.create_index('ix_jobs_organisation_id_updated_at', 'jobs', ['organisation_id', 'updated_at'], unique=False, schema='app')
    op.create_index('ix_jobs_project_updated_at', 'jobs', ['project', 'updated_at'], unique=False, schema='app')
    op.create_index('ix_jobs_status_updated_at', 'jobs', ['status', 'updated_at'], unique=False, schema='app')
    op.create_index('ix_jobs_updated_at', 'jobs', ['updated_at'], unique=False, schema='app')
    op.create_table('tasks',
    sa.Column('parent_job_id', sa.Text(), nullable=False),
    sa.Column('attempt', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('stage', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('ordinal', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('task_id', sa.Text(), nullable=False),
    sa.Column('task_index', sa.Text(), nullable=False),
    sa.Column('task_type', sa.Text(), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('parameters', JSONB(), nullable=False),
    sa.Column('result_data', JSONB(), nullable=False),
    sa.Column('next_stage_params', JSONB(), nullable=False),
    sa.Column('large_metadata_path', sa.Text(), nullable=True),
    sa.Column('error_details', sa.Text(), nullable=True),
    sa.Column('heartbeat', sa.DateTime(timezone=True), nullable=True),
    sa.Column('retry_count', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('kept', sa.Boolean(), nullable=False),
    sa.PrimaryKeyConstraint('parent_job_id', 'attempt', 'stage', 'ordinal', name='pk_tasks'),
    schema='app'
    )
    op.create_index('ix_tasks_parent_job_id_attempt_status', 'tasks', ['parent_job_id', 'attempt', 'status'], unique=False, schema='app')
    op.create_table('attachments',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('blob_key', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('blob_name', sa.Text(), nullable=False),
    sa.Column('filename', sa.Text(), nullable=False),
    sa.Column('size', sa.BigInteger(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('case_id', 'document_id', 'blob_key', name='pk_attachments')
    )
    op.create_table('batches',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('batch_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('loader_status', sa.Text(), nullable=False),
    sa.Column('loader_status_updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('attention', sa.Text(), nullable=True),
    sa.Column('purpose', sa.Text(), nullable=True),
    sa.Column('timings', sa.Text(), nullable=True),
    sa.Column('cancelled_mode', sa.Text(), nullable=True),
    sa.Column('job_finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('end_finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('skipped', sa.Boolean(), nullable=False),
    sa.Column('redrive_pass', sa.Integer(), nullable=False),
    sa.Column('final_pass', sa.Boolean(), nullable=False),
    sa.Column('dead_letters', sa.Integer(), nullable=False),
    sa.Column('job_documents', sa.Integer(), nullable=True),
    sa.Column('passed_on', sa.Text(), nullable=True),
    sa.Column('lost', sa.Text(), nullable=True),
    sa.Column('known', sa.Boolean(), server_default=sa.text('true'), nullable=False),
    sa.Column('unannounced_since', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'batch_id', name='pk_batches')
    )
    op.create_index('ix_batches_unannounced_since', 'batches', ['unannounced_since'], unique=False, postgresql_where=sa.text('unannounced_since IS NOT NULL'))
    op.create_index('ix_batches_updated_at', 'batches', ['updated_at'], unique=False)
    op.create_table('cases',
    sa.Column('id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('max_processing_daemons', sa.Integer(), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_cases')
    )
    op.create_table('countries',
    sa.Column('id', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('alpha2', sa.Text(), nullable=False),
    sa.Column('alpha3', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('spellings', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_countries'),
    sa.UniqueConstraint('alpha2', name='uq_countries_alpha2'),
    sa.UniqueConstraint('alpha3', name='uq_countries_alpha3')
    )
    op.create_table('crew_members',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('employee_no', sa.Text(), nullable=False),
    sa.Column('valid_from', sa.Date(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('crew', sa.Text(), nullable=True),
    sa.Column('trade', sa.Text(), nullable=True),
    sa.Column('classification', sa.Text(), nullable=True),
    sa.Column('valid_to', sa.Date(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'employee_no', 'valid_from', name='pk_crew_members'),
    info={'known_as': 'crew_members'}
    )
    op.create_index('ix_crew_members_project_id_crew', 'crew_members', ['project_id', 'crew'], unique=False)
    op.create_table('crew_trades',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('straight_rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('over_rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('double_rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('burden', sa.Numeric(20, 6), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'code', name='pk_crew_trades'),
    info={'known_as': 'crew_trades'}
    )
    op.create_table('crews',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('foreman', sa.Text(), nullable=True),
    sa.Column('shift', sa.Text(), nullable=True),
    sa.Column('calendar', sa.Text(), nullable=True),
    sa.Column('output_per_hour', sa.Numeric(20, 6), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'code', name='pk_crews'),
    info={'known_as': 'crews'}
    )
    op.create_table('custom_lists',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('open', sa.Boolean(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_custom_lists'),
    sa.UniqueConstraint('organisation_id', 'key', name='uq_custom_lists_organisation_id_key')
    )
    op.create_table('decisions',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('pipeline', sa.Text(), nullable=False),
    sa.Column('workflow_id', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('decision', sa.Text(), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('confidence', sa.Float(), nullable=True),
    sa.Column('alternatives', sa.Text(), nullable=False),
    sa.Column('digest', sa.LargeBinary(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_decisions'),
    sa.UniqueConstraint('workflow_id', 'digest', name='uq_decisions_workflow_id_digest')
    )
    op.create_table('declared_types',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('applied_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('applied_by', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('name', name='pk_declared_types')
    )
    op.create_table('doc_dedupe',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('batch_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('sha256', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'batch_id', 'sha256', name='pk_doc_dedupe')
    )
    op.create_table('document_messages',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('message_key', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('own', sa.Boolean(), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'document_id', 'message_key', name='pk_document_messages')
    )
    op.create_index('ix_document_messages_case_id_message_key', 'document_messages', ['case_id', 'message_key'], unique=False)
    op.create_table('document_relations',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('related_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('kind', sa.Text(), autoincrement=False, nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'document_id', 'related_id', 'kind', name='pk_document_relations')
    )
    op.create_table('document_tags',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('tag_key', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('tag', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'document_id', 'tag_key', name='pk_document_tags')
    )
    op.create_table('document_texts',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('text', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'document_id', name='pk_document_texts')
    )
    op.create_table('document_versions',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('version', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('batch_id', sa.BigInteger(), nullable=False),
    sa.Column('blob_name', sa.Text(), nullable=False),
    sa.Column('filename', sa.Text(), nullable=True),
    sa.Column('etag', sa.Text(), nullable=True),
    sa.Column('sha256', sa.Text(), nullable=True),
    sa.Column('media_type', sa.Text(), nullable=True),
    sa.Column('title', sa.Text(), nullable=True),
    sa.Column('tags', sa.Text(), nullable=True),
    sa.Column('text', sa.Text(), nullable=True),
    sa.Column('size', sa.BigInteger(), nullable=True),
    sa.Column('sent_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('kept_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'document_id', 'version', name='pk_document_versions')
    )
    op.create_table('documents',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('batch_id', sa.BigInteger(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('blob_name', sa.Text(), nullable=True),
    sa.Column('filename', sa.Text(), nullable=True),
    sa.Column('etag', sa.Text(), nullable=True),
    sa.Column('sha256', sa.Text(), nullable=True),
    sa.Column('media_type', sa.Text(), nullable=True),
    sa.Column('title', sa.Text(), nullable=True),
    sa.Column('author', sa.Text(), nullable=True),
    sa.Column('size', sa.BigInteger(), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('modified_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('pages', sa.Integer(), nullable=True),
    sa.Column('metadata', sa.Text(), nullable=True),
    sa.Column('notes', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('failed_event', sa.Text(), nullable=True),
    sa.Column('duplicate_of', sa.Text(), nullable=True),
    sa.Column('truncated', sa.Boolean(), nullable=False),
    sa.Column('message_key', sa.Text(), nullable=True),
    sa.Column('sent_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('parent_id', sa.Text(), nullable=True),
    sa.Column('family_id', sa.Text(), nullable=True),
    sa.Column('depth', sa.Integer(), nullable=True),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'document_id', name='pk_documents')
    )
    op.create_index('ix_documents_case_id_batch_id_state', 'documents', ['case_id', 'batch_id', 'state'], unique=False)
    op.create_index('ix_documents_case_id_family_id', 'documents', ['case_id', 'family_id'], unique=False)
    op.create_index('ix_documents_case_id_sha256', 'documents', ['case_id', 'sha256'], unique=False)
    op.create_index('ix_documents_updated_at', 'documents', ['updated_at'], unique=False)
    op.create_table('equipment',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('category', sa.Text(), nullable=True),
    sa.Column('make', sa.Text(), nullable=True),
    sa.Column('model', sa.Text(), nullable=True),
    sa.Column('serial', sa.Text(), nullable=True),
    sa.Column('ownership', sa.Text(), nullable=True),
    sa.Column('rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('rate_unit', sa.Text(), nullable=True),
    sa.Column('fuel', sa.Text(), nullable=True),
    sa.Column('status', sa.Text(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'code', name='pk_equipment'),
    info={'known_as': 'equipment'}
    )
    op.create_table('estimate_lines',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('service_id', sa.Text(), nullable=False),
    sa.Column('item_code', sa.Text(), nullable=False),
    sa.Column('section', sa.Text(), nullable=False),
    sa.Column('sequence', sa.BigInteger(), nullable=False),
    sa.Column('cost_code', sa.Text(), nullable=True),
    sa.Column('wbs_code', sa.Text(), nullable=True),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('unit', sa.Text(), nullable=True),
    sa.Column('quantity', sa.Numeric(20, 6), nullable=True),
    sa.Column('unit_rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('man_hours', sa.Numeric(20, 6), nullable=True),
    sa.Column('labour_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('material_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('equipment_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('subcontract_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('markup', sa.Numeric(20, 6), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'service_id', 'item_code', 'section', 'sequence', name='pk_estimate_lines'),
    info={'known_as': 'estimate_lines'}
    )
    op.create_table('events',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('starts_on', sa.Date(), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_events')
    )
    op.create_index('ix_events_organisation_id', 'events', ['organisation_id'], unique=False)
    op.create_table('expected_days',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('day', sa.Date(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('record', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('name', 'day', name='pk_expected_days')
    )
    op.create_table('failed_messages',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('batch_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('message_key', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('event_type', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('message', sa.Text(), nullable=False),
    sa.Column('failed_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'batch_id', 'document_id', 'message_key', name='pk_failed_messages')
    )
    op.create_table('import_answers',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('document_type', sa.Text(), nullable=False),
    sa.Column('question', sa.Text(), nullable=False),
    sa.Column('answer', sa.Text(), nullable=False),
    sa.Column('task_id', sa.Text(), nullable=False),
    sa.Column('answered_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'document_type', 'question', name='pk_import_answers')
    )
    op.create_table('import_progress',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('task_id', sa.Text(), nullable=False),
    sa.Column('cursor', sa.BigInteger(), nullable=False),
    sa.Column('created', sa.BigInteger(), nullable=False),
    sa.Column('updated', sa.BigInteger(), nullable=False),
    sa.Column('unchanged', sa.BigInteger(), nullable=False),
    sa.Column('rejected', sa.BigInteger(), nullable=False),
    sa.Column('deleted', sa.BigInteger(), nullable=False),
    sa.Column('flagged', sa.BigInteger(), nullable=False),
    sa.Column('problem_count', sa.BigInteger(), nullable=False),
    sa.Column('header', sa.Text(), nullable=False),
    sa.Column('finished', sa.Boolean(), nullable=False),
    sa.Column('retired', sa.Text(), nullable=True),
    sa.Column('aside', sa.Text(), nullable=True),
    sa.Column('staged_columns', sa.Text(), nullable=True),
    sa.Column('token', sa.Text(), nullable=True),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_import_progress'),
    sa.UniqueConstraint('project_id', 'task_id', name='uq_import_progress_project_id_task_id')
    )
    op.create_table('import_rejects',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('line', sa.BigInteger(), nullable=False),
    sa.Column('cells', sa.Text(), nullable=False),
    sa.Column('problems', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_import_rejects')
    )
    op.create_index('ix_import_rejects_load_id_line_id', 'import_rejects', ['load_id', 'line', 'id'], unique=False)
    op.create_table('import_tasks',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('task_id', sa.Text(), nullable=False),
    sa.Column('document_type', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('strategy', sa.Text(), nullable=True),
    sa.Column('path', sa.Text(), nullable=True),
    sa.Column('guard', sa.Text(), nullable=True),
    sa.Column('digest', sa.Text(), nullable=True),
    sa.Column('run_id', sa.Text(), nullable=True),
    sa.Column('created', sa.BigInteger(), nullable=False),
    sa.Column('updated', sa.BigInteger(), nullable=False),
    sa.Column('unchanged', sa.BigInteger(), nullable=False),
    sa.Column('rejected', sa.BigInteger(), nullable=False),
    sa.Column('deleted', sa.BigInteger(), nullable=False),
    sa.Column('flagged', sa.BigInteger(), nullable=False),
    sa.Column('problem_count', sa.BigInteger(), nullable=False),
    sa.Column('problems', sa.Text(), nullable=False),
    sa.Column('report', sa.Text(), nullable=True),
    sa.Column('source_name', sa.Text(), nullable=True),
    sa.Column('source_size', sa.BigInteger(), nullable=True),
    sa.Column('source_sha256', sa.Text(), nullable=True),
    sa.Column('filename', sa.Text(), nullable=True),
    sa.Column('workflow_id', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('note', sa.Text(), nullable=True),
    sa.Column('corrections', sa.Text(), nullable=True),
    sa.Column('problems_removed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('started_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'task_id', name='pk_import_tasks')
    )
    op.create_index('ix_import_tasks_finished_at', 'import_tasks', ['finished_at'], unique=False)
    op.create_index('ix_import_tasks_not_completed', 'import_tasks', ['state', 'created_at'], unique=False, postgresql_where=sa.text("state <> 'completed'"))
    op.create_index('ix_import_tasks_problems', 'import_tasks', ['finished_at'], unique=False, postgresql_where=sa.text("(report IS NOT NULL OR problems <> '[]')"))
    op.create_index('uq_import_tasks_guard', 'import_tasks', ['project_id', 'document_type', 'guard'], unique=True, postgresql_where=sa.text("guard IS NOT NULL AND state IN ('running', 'parked', 'completed', 'failed')"))
    op.create_table('job_aliases',
    sa.Column('alias', sa.Text(), nullable=False),
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('alias', name='pk_job_aliases')
    )
    op.create_table('jobconfig',
    sa.Column('queue', sa.Text(), nullable=False),
    sa.Column('rule', sa.Text(), nullable=False),
    sa.Column('record', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('queue', 'rule', name='pk_jobconfig')
    )
    op.create_table('jobconfig_changes',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('queue', sa.Text(), nullable=False),
    sa.Column('rule', sa.Text(), nullable=False),
    sa.Column('change', sa.Text(), nullable=False),
    sa.Column('record', sa.Text(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_jobconfig_changes')
    )
    op.create_table('jobstatus',
    sa.Column('transfer_id', sa.Text(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('queue', sa.Text(), nullable=True),
    sa.Column('job', sa.Text(), nullable=True),
    sa.Column('file', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('by', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('transfer_id', 'at', 'status', name='pk_jobstatus')
    )
    op.create_index('ix_jobstatus_queue_at', 'jobstatus', ['queue', 'at'], unique=False)
    op.create_table('leases',
    sa.Column('position', sa.BigInteger(), nullable=False),
    sa.Column('resource', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('units', sa.Integer(), nullable=False),
    sa.Column('granted', sa.Boolean(), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('position', name='pk_leases'),
    sa.UniqueConstraint('resource', 'owner', name='uq_leases_resource_owner')
    )
    op.create_index('ix_leases_owner', 'leases', ['owner'], unique=False)
    op.create_table('materials',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('unit', sa.Text(), nullable=True),
    sa.Column('price', sa.Numeric(20, 6), nullable=True),
    sa.Column('currency', sa.Text(), nullable=True),
    sa.Column('supplier', sa.Text(), nullable=True),
    sa.Column('lead_time_days', sa.Integer(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'code', name='pk_materials'),
    info={'known_as': 'materials'}
    )
    op.create_table('membership_periods',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('starts_on', sa.Date(), nullable=True),
    sa.Column('ends_on', sa.Date(), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_membership_periods')
    )
    op.create_index('ix_membership_periods_organisation_id', 'membership_periods', ['organisation_id'], unique=False)
    op.create_table('membership_types',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('spellings', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_membership_types'),
    sa.UniqueConstraint('organisation_id', 'name', name='uq_membership_types_organisation_id_name')
    )
    op.create_table('mto_lines',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('service_id', sa.Text(), nullable=False),
    sa.Column('drawing', sa.Text(), nullable=False),
    sa.Column('commodity_code', sa.Text(), nullable=False),
    sa.Column('size', sa.Text(), nullable=False),
    sa.Column('sequence', sa.BigInteger(), nullable=False),
    sa.Column('line_no', sa.Text(), nullable=True),
    sa.Column('spool', sa.Text(), nullable=True),
    sa.Column('area', sa.Text(), nullable=True),
    sa.Column('system', sa.Text(), nullable=True),
    sa.Column('spec', sa.Text(), nullable=True),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('quantity', sa.Numeric(20, 6), nullable=True),
    sa.Column('unit', sa.Text(), nullable=True),
    sa.Column('revision', sa.Text(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'service_id', 'drawing', 'commodity_code', 'size', 'sequence', name='pk_mto_lines'),
    info={'known_as': 'mto_lines'}
    )
    op.create_table('partner_sessions',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text(), nullable=False),
    sa.Column('until', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('name', 'owner', name='pk_partner_sessions')
    )
    op.create_table('partners',
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('revision', sa.Integer(), nullable=False),
    sa.Column('record', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('name', name='pk_partners')
    )
    op.create_table('process_checkpoints',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('batch_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('document_id', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('event_type', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('step', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('message_key', sa.Text(), server_default=sa.text("''"), autoincrement=False, nullable=False),
    sa.Column('done_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('digest', sa.Text(), nullable=True),
    sa.Column('etag', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('case_id', 'batch_id', 'document_id', 'event_type', 'step', 'message_key', name='pk_process_checkpoints')
    )
    op.create_table('api_tokens',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=True),
    sa.Column('roles', JSONB(), nullable=False),
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('beginning', sa.Text(), nullable=False),
    sa.Column('made_by', sa.Text(), nullable=False),
    sa.Column('made_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('last_used_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revoked_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('session', sa.Text(), nullable=True),
    sa.Column('upload', JSONB(none_as_null=True), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_api_tokens')
    )
    op.create_index('ix_api_tokens_expires_at', 'api_tokens', ['expires_at'], unique=False)
    op.create_index('ix_api_tokens_organisation_id_id', 'api_tokens', ['organisation_id', 'id'], unique=False)
    op.create_index('ix_api_tokens_session_id', 'api_tokens', ['session', 'id'], unique=False)
    op.create_table('audit',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=True),
    sa.Column('who', sa.Text(), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('action', sa.Text(), nullable=False),
    sa.Column('object', sa.Text(), nullable=True),
    sa.Column('before', JSONB(), nullable=True),
    sa.Column('after', JSONB(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('from_where', sa.Text(), nullable=True),
    sa.Column('request_id', sa.Text(), nullable=True),
    sa.Column('status', sa.Integer(), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_audit')
    )
    op.create_index('ix_audit_action_id', 'audit', ['action', 'id'], unique=False)
    op.create_index('ix_audit_object_id', 'audit', ['object', 'id'], unique=False)
    op.create_index('ix_audit_organisation_id_id', 'audit', ['organisation_id', 'id'], unique=False)
    op.create_index('ix_audit_who_id', 'audit', ['who', 'id'], unique=False)
    op.create_index('ix_audit_at', 'audit', ['at'], unique=False)
    op.create_table('sessions',
    sa.Column('sha256', sa.Text(), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('email', sa.Text(), nullable=True),
    sa.Column('organisations', JSONB(), nullable=False),
    sa.Column('roles', JSONB(), nullable=False),
    sa.Column('roles_in', JSONB(), nullable=False),
    sa.Column('provider', sa.Text(), nullable=True),
    sa.Column('token_id', sa.BigInteger(), nullable=True),
    sa.Column('id_token', sa.Text(), nullable=True),
    sa.Column('is_link', sa.Boolean(), nullable=False),
    sa.Column('made_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('seen_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('expires_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('sha256', name='pk_sessions')
    )
    op.create_index('ix_sessions_expires_at', 'sessions', ['expires_at'], unique=False)
    op.create_index('ix_sessions_subject', 'sessions', ['subject'], unique=False)
    op.create_table('saved_views',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('query', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_saved_views'),
    sa.UniqueConstraint('subject', 'name', name='uq_saved_views_subject_name')
    )
    op.create_table('rejected_messages',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('queue', sa.Text(), nullable=False),
    sa.Column('message_id', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.Column('description', sa.Text(), nullable=False),
    sa.Column('body', sa.LargeBinary(), nullable=False),
    sa.Column('body_sha256', sa.Text(), server_default=sa.text("''"), nullable=False),
    sa.Column('truncated', sa.Boolean(), nullable=False),
    sa.Column('received_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('resubmitted_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('dismissed_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('by', sa.Text(), nullable=True),
    sa.Column('note', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_rejected_messages'),
    sa.UniqueConstraint('queue', 'message_id', 'body_sha256', name='uq_rejected_messages_queue_message_id_body_sha256')
    )
    op.create_index('ix_rejected_messages_open', 'rejected_messages', ['received_at', 'queue'], unique=False, postgresql_where=sa.text('resubmitted_at IS NULL'))
    op.create_index('ix_rejected_messages_resubmitted_at', 'rejected_messages', ['resubmitted_at'], unique=False)
    op.create_table('remembered_columns',
    sa.Column('organisation_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('import_type', sa.Text(), nullable=False),
    sa.Column('header', sa.Text(), nullable=False),
    sa.Column('target', sa.Text(), nullable=True),
    sa.Column('shown', sa.Text(), server_default=sa.text("''"), nullable=False),
    sa.Column('decided_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('decided_by', sa.Text(), server_default=sa.text("''"), nullable=False),
    sa.PrimaryKeyConstraint('organisation_id', 'import_type', 'header', name='pk_remembered_columns')
    )
    op.create_table('remembered_edits',
    sa.Column('organisation_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('import_type', sa.Text(), nullable=False),
    sa.Column('about', sa.Text(), nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('headers', sa.Text(), nullable=False),
    sa.Column('shape', sa.Text(), nullable=True),
    sa.Column('decided_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('decided_by', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('organisation_id', 'import_type', 'about', name='pk_remembered_edits')
    )
    op.create_table('remembered_people',
    sa.Column('organisation_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('question', sa.Text(), nullable=False),
    sa.Column('person_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('is_same', sa.Boolean(), nullable=False),
    sa.Column('import_id', sa.BigInteger(), nullable=False),
    sa.Column('decided_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('organisation_id', 'question', 'person_id', name='pk_remembered_people')
    )
    op.create_index('ix_remembered_people_import_id', 'remembered_people', ['import_id'], unique=False)
    op.create_table('remembered_values',
    sa.Column('organisation_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('import_type', sa.Text(), nullable=False),
    sa.Column('field', sa.Text(), nullable=False),
    sa.Column('value', sa.Text(), nullable=False),
    sa.Column('target_id', sa.BigInteger(), nullable=True),
    sa.Column('target_name', sa.Text(), nullable=True),
    sa.Column('shown', sa.Text(), server_default=sa.text("''"), nullable=False),
    sa.Column('decided_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('decided_by', sa.Text(), server_default=sa.text("''"), nullable=False),
    sa.PrimaryKeyConstraint('organisation_id', 'import_type', 'field', 'value', name='pk_remembered_values')
    )
    op.create_table('runs',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('pipeline', sa.Text(), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('short', sa.Text(), nullable=False),
    sa.Column('title', sa.Text(), nullable=True),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('own_state', sa.Text(), nullable=False),
    sa.Column('needs_attention', sa.Boolean(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('waits_for', sa.Text(), nullable=True),
    sa.Column('counts', JSONB(), nullable=False),
    sa.Column('project', sa.Text(), nullable=True),
    sa.Column('organisation_id', sa.BigInteger(), nullable=True),
    sa.Column('size', sa.BigInteger(), nullable=True),
    sa.Column('owner', sa.Text(), nullable=True),
    sa.Column('links', JSONB(), nullable=False),
    sa.Column('answers_at', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('changed_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('ended_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('revision', sa.BigInteger(), server_default=sa.literal_column('(pg_current_xact_id()::text)::bigint'), nullable=False),
    sa.Column('words', TSVECTOR(), sa.Computed("array_to_tsvector(string_to_array(btrim(left(regexp_replace(lower(normalize(coalesce(project, '') || ' ' || CASE WHEN short ~ '^[0-9a-f][0-9a-f-]{31,}$' THEN '' ELSE short END || ' ' || coalesce(title, ''), NFKC)), '[\\u0001-\\u002f\\u003a-\\u0040\\u005b-\\u0060\\u007b-\\u00bf\\u2000-\\u206f\\u3000-\\u303f]+', ' ', 'g'), 500)), ' '))", persisted=True), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_runs')
    )
    op.create_index('ix_runs_answers_at', 'runs', ['answers_at'], unique=False)
    op.create_index('ix_runs_changed_at_id', 'runs', ['changed_at', 'id'], unique=False)
    op.create_index('ix_runs_key', 'runs', ['key'], unique=False)
    op.create_index('ix_runs_kind_changed_at_id', 'runs', ['kind', 'changed_at', 'id'], unique=False)
    op.create_index('ix_runs_needing_attention', 'runs', ['changed_at', 'id'], unique=False, postgresql_where=sa.text('needs_attention'))
    op.create_index('ix_runs_open', 'runs', ['organisation_id'], unique=False, postgresql_where=sa.text('ended_at IS NULL'))
    op.create_index('ix_runs_organisation_id_created_at', 'runs', ['organisation_id', 'created_at'], unique=False)
    op.create_index('ix_runs_own_state', 'runs', [sa.literal_column('lower(own_state)'), 'changed_at', 'id'], unique=False)
    op.create_index('ix_runs_pipeline_changed_at_id', 'runs', ['pipeline', 'changed_at', 'id'], unique=False)
    op.create_index('ix_runs_project_changed_at_id', 'runs', ['project', 'changed_at', 'id'], unique=False)
    op.create_index('ix_runs_revision_id', 'runs', ['revision', 'id'], unique=False)
    op.create_index('ix_runs_short', 'runs', ['short'], unique=False)
    op.create_index('ix_runs_state_changed_at_id', 'runs', ['state', 'changed_at', 'id'], unique=False)
    op.create_index('ix_runs_words', 'runs', ['words'], unique=False, postgresql_using='gin')
    op.create_table('run_webhooks',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=True),
    sa.Column('url', sa.Text(), nullable=False),
    sa.Column('events', JSONB(), nullable=False),
    sa.Column('pipelines', JSONB(), nullable=False),
    sa.Column('secret', sa.LargeBinary(), nullable=False),
    sa.Column('former_secret', sa.LargeBinary(), nullable=True),
    sa.Column('former_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('made_by', sa.Text(), nullable=False),
    sa.Column('made_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('enabled', sa.Boolean(), nullable=False),
    sa.Column('problem', sa.Text(), nullable=True),
    sa.Column('revision', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_run_webhooks')
    )
    op.create_index('ix_run_webhooks_organisation_id_id', 'run_webhooks', ['organisation_id', 'id'], unique=False)
    op.create_table('run_messages',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('webhook_id', sa.BigInteger(), nullable=False),
    sa.Column('message_id', sa.Text(), nullable=False),
    sa.Column('event', sa.Text(), nullable=False),
    sa.Column('run_id', sa.Text(), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('made_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('is_over', sa.Boolean(), nullable=False),
    sa.Column('due_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('attempts', sa.Integer(), nullable=False),
    sa.Column('delivered_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('status_code', sa.Integer(), nullable=True),
    sa.Column('problem', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['webhook_id'], ['run_webhooks.id'], name='fk_run_messages_webhook_id', ondelete='CASCADE'),
    sa.PrimaryKeyConstraint('id', name='pk_run_messages'),
    sa.UniqueConstraint('webhook_id', 'message_id', name='uq_run_messages_webhook_id_message_id')
    )
    op.create_index('ix_run_messages_made_at', 'run_messages', ['made_at'], unique=False)
    op.create_index('ix_run_messages_webhook_id_due_at', 'run_messages', ['webhook_id', 'due_at'], unique=False)
    op.create_index('ix_run_messages_webhook_id_run_id', 'run_messages', ['webhook_id', 'run_id'], unique=False)
    op.create_table('schedule_activities',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('task_code', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('type', sa.Text(), nullable=True),
    sa.Column('status', sa.Text(), nullable=True),
    sa.Column('wbs_code', sa.Text(), nullable=True),
    sa.Column('calendar', sa.Text(), nullable=True),
    sa.Column('original_duration_hours', sa.Numeric(20, 6), nullable=True),
    sa.Column('remaining_duration_hours', sa.Numeric(20, 6), nullable=True),
    sa.Column('percent_complete', sa.Numeric(20, 6), nullable=True),
    sa.Column('planned_start', sa.DateTime(), nullable=True),
    sa.Column('planned_finish', sa.DateTime(), nullable=True),
    sa.Column('actual_start', sa.DateTime(), nullable=True),
    sa.Column('actual_finish', sa.DateTime(), nullable=True),
    sa.Column('early_start', sa.DateTime(), nullable=True),
    sa.Column('early_finish', sa.DateTime(), nullable=True),
    sa.Column('late_start', sa.DateTime(), nullable=True),
    sa.Column('late_finish', sa.DateTime(), nullable=True),
    sa.Column('total_float_hours', sa.Numeric(20, 6), nullable=True),
    sa.Column('constraint_type', sa.Text(), nullable=True),
    sa.Column('constraint_date', sa.DateTime(), nullable=True),
    sa.Column('area', sa.Text(), nullable=True),
    sa.Column('discipline', sa.Text(), nullable=True),
    sa.Column('responsible', sa.Text(), nullable=True),
    sa.Column('notes', sa.Text(), nullable=True),
    sa.Column('level_1', sa.Text(), nullable=True),
    sa.Column('level_2', sa.Text(), nullable=True),
    sa.Column('level_3', sa.Text(), nullable=True),
    sa.Column('level_4', sa.Text(), nullable=True),
    sa.Column('level_5', sa.Text(), nullable=True),
    sa.Column('level_6', sa.Text(), nullable=True),
    sa.Column('level_7', sa.Text(), nullable=True),
    sa.Column('level_8', sa.Text(), nullable=True),
    sa.Column('level_9', sa.Text(), nullable=True),
    sa.Column('level_10', sa.Text(), nullable=True),
    sa.Column('missing_since', sa.DateTime(timezone=True), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', 'task_code', name='pk_schedule_activities'),
    info={'known_as': 'schedule_activities'}
    )
    op.create_table('schedule_activity_codes',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('task_code', sa.Text(), nullable=False),
    sa.Column('code_type', sa.Text(), nullable=False),
    sa.Column('code_value', sa.Text(), nullable=True),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', 'task_code', 'code_type', name='pk_schedule_activity_codes'),
    info={'known_as': 'schedule_activity_codes'}
    )
    op.create_table('schedule_aliases',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('alias', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'alias', name='pk_schedule_aliases')
    )
    op.create_index('ix_schedule_aliases_project_id_schedule_id', 'schedule_aliases', ['project_id', 'schedule_id'], unique=False)
    op.create_table('schedule_assignments',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('task_code', sa.Text(), nullable=False),
    sa.Column('resource_code', sa.Text(), nullable=False),
    sa.Column('role', sa.Text(), nullable=False),
    sa.Column('sequence', sa.BigInteger(), nullable=False),
    sa.Column('planned_units', sa.Numeric(20, 6), nullable=True),
    sa.Column('actual_units', sa.Numeric(20, 6), nullable=True),
    sa.Column('remaining_units', sa.Numeric(20, 6), nullable=True),
    sa.Column('planned_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('actual_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('remaining_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', 'task_code', 'resource_code', 'role', 'sequence', name='pk_schedule_assignments'),
    info={'known_as': 'schedule_assignments'}
    )
    op.create_table('schedule_calendars',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('type', sa.Text(), nullable=True),
    sa.Column('hours_per_day', sa.Numeric(20, 6), nullable=True),
    sa.Column('working_times', sa.Text(), nullable=True),
    sa.Column('exceptions', sa.Text(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', 'code', name='pk_schedule_calendars'),
    info={'known_as': 'schedule_calendars'}
    )
    op.create_table('schedule_file_projects',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('task_id', sa.Text(), nullable=False),
    sa.Column('primavera_project_id', sa.Text(), nullable=False),
    sa.Column('object_id', sa.Text(), nullable=True),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('data_date', sa.DateTime(), nullable=True),
    sa.Column('planned_start', sa.DateTime(), nullable=True),
    sa.Column('finish', sa.DateTime(), nullable=True),
    sa.Column('activities', sa.Integer(), nullable=True),
    sa.Column('source_name', sa.Text(), nullable=True),
    sa.Column('source_sha256', sa.Text(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'task_id', 'primavera_project_id', name='pk_schedule_file_projects'),
    info={'known_as': 'schedule_file_projects'}
    )
    op.create_table('schedule_projects',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('primavera_project_id', sa.Text(), nullable=True),
    sa.Column('object_id', sa.Text(), nullable=True),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('data_date', sa.DateTime(), nullable=True),
    sa.Column('planned_start', sa.DateTime(), nullable=True),
    sa.Column('finish', sa.DateTime(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', name='pk_schedule_projects'),
    info={'known_as': 'schedule_projects'}
    )
    op.create_table('schedule_relationships',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('predecessor_code', sa.Text(), nullable=False),
    sa.Column('successor_code', sa.Text(), nullable=False),
    sa.Column('type', sa.Text(), nullable=False),
    sa.Column('predecessor_project', sa.Text(), nullable=False),
    sa.Column('successor_project', sa.Text(), nullable=False),
    sa.Column('lag_hours', sa.Numeric(20, 6), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', 'predecessor_code', 'successor_code', 'type', 'predecessor_project', 'successor_project', name='pk_schedule_relationships'),
    info={'known_as': 'schedule_relationships'}
    )
    op.create_table('schedule_resources',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('resource_code', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('type', sa.Text(), nullable=True),
    sa.Column('unit', sa.Text(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', 'resource_code', name='pk_schedule_resources'),
    info={'known_as': 'schedule_resources'}
    )
    op.create_table('schedule_seen',
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('table_name', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('load_id', 'table_name', 'key', name='pk_schedule_seen')
    )
    op.create_table('schedule_udf_values',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('entity', sa.Text(), nullable=False),
    sa.Column('entity_code', sa.Text(), nullable=False),
    sa.Column('udf', sa.Text(), nullable=False),
    sa.Column('type', sa.Text(), nullable=True),
    sa.Column('value', sa.Text(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', 'entity', 'entity_code', 'udf', name='pk_schedule_udf_values'),
    info={'known_as': 'schedule_udf_values'}
    )
    op.create_table('schedule_uploads',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('blob_name', sa.Text(), nullable=False),
    sa.Column('size', sa.BigInteger(), nullable=True),
    sa.Column('sha256', sa.Text(), nullable=True),
    sa.Column('etag', sa.Text(), nullable=True),
    sa.Column('original_filename', sa.Text(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'blob_name', name='pk_schedule_uploads'),
    info={'known_as': 'schedule_uploads'}
    )
    op.create_table('schedule_wbs',
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('schedule_id', sa.Text(), nullable=False),
    sa.Column('wbs_code', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('parent_code', sa.Text(), nullable=True),
    sa.Column('sequence', sa.BigInteger(), nullable=True),
    sa.Column('version', sa.Integer(), nullable=False),
    sa.Column('source_task', sa.Text(), nullable=False),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('project_id', 'schedule_id', 'wbs_code', name='pk_schedule_wbs'),
    info={'known_as': 'schedule_wbs'}
    )
    op.create_table('spreadsheet_columns',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('id', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('position', sa.Integer(), nullable=False),
    sa.Column('header', sa.Text(), nullable=False),
    sa.Column('target', sa.Text(), nullable=True),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('confidence', sa.Float(), nullable=False),
    sa.Column('alternatives', sa.Text(), nullable=False),
    sa.Column('samples', sa.Text(), nullable=False),
    sa.Column('why', sa.Text(), server_default=sa.text("''"), nullable=False),
    sa.Column('blanks', sa.Text(), server_default=sa.text("'[]'"), nullable=False),
    sa.PrimaryKeyConstraint('import_id', 'id', name='pk_spreadsheet_columns')
    )
    op.create_table('spreadsheet_differences',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('place', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('line', sa.BigInteger(), nullable=False),
    sa.Column('table_name', sa.Text(), nullable=False),
    sa.Column('column_name', sa.Text(), nullable=False),
    sa.Column('before', sa.Text(), nullable=True),
    sa.Column('after', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('import_id', 'place', name='pk_spreadsheet_differences')
    )
    op.create_table('spreadsheet_files',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('blob', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('import_id', 'name', name='pk_spreadsheet_files')
    )
    op.create_table('spreadsheet_imports',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('uuid', sa.Text(), nullable=False),
    sa.Column('workflow_id', sa.Text(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=False),
    sa.Column('import_type', sa.Text(), nullable=False),
    sa.Column('context_id', sa.BigInteger(), nullable=True),
    sa.Column('type_digest', sa.Text(), nullable=True),
    sa.Column('scope', JSONB(), server_default=sa.text("'{}'"), nullable=False),
    sa.Column('source', sa.Text(), nullable=True),
    sa.Column('filename', sa.Text(), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('notify', sa.Text(), nullable=True),
    sa.Column('auto_start', sa.Boolean(), nullable=False),
    sa.Column('dry_run', sa.Boolean(), nullable=False),
    sa.Column('fingerprint', sa.Text(), nullable=True),
    sa.Column('remembers', sa.Boolean(), nullable=True),
    sa.Column('link', sa.Text(), nullable=True),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('state_since', sa.DateTime(timezone=True), nullable=False),
    sa.Column('sequence', sa.BigInteger(), nullable=False),
    sa.Column('version', sa.BigInteger(), nullable=False),
    sa.Column('columns_version', sa.BigInteger(), nullable=False),
    sa.Column('values_version', sa.BigInteger(), nullable=False),
    sa.Column('revision', sa.BigInteger(), nullable=False),
    sa.Column('step', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('assignee', sa.Text(), nullable=False),
    sa.Column('waiting_since', sa.DateTime(timezone=True), nullable=True),
    sa.Column('decided_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('total', sa.BigInteger(), nullable=True),
    sa.Column('created', sa.BigInteger(), nullable=False),
    sa.Column('updated', sa.BigInteger(), nullable=False),
    sa.Column('skipped', sa.BigInteger(), nullable=False),
    sa.Column('error', sa.BigInteger(), nullable=False),
    sa.Column('parked', sa.BigInteger(), nullable=False),
    sa.Column('values_total', sa.BigInteger(), nullable=False),
    sa.Column('open_values', sa.BigInteger(), nullable=False),
    sa.Column('mark_round', sa.BigInteger(), nullable=False),
    sa.Column('mark_chunk', sa.BigInteger(), nullable=False),
    sa.Column('mark_cursor', sa.BigInteger(), nullable=False),
    sa.Column('mark_offset', sa.BigInteger(), nullable=False),
    sa.Column('round_ended', sa.Boolean(), nullable=False),
    sa.Column('layout', sa.Text(), nullable=True),
    sa.Column('preview', sa.Text(), nullable=True),
    sa.Column('fields', sa.Text(), nullable=True),
    sa.Column('report', sa.Text(), nullable=True),
    sa.Column('undo_state', sa.Text(), nullable=True),
    sa.Column('undo_reason', sa.Text(), nullable=True),
    sa.Column('undo_by', sa.Text(), nullable=True),
    sa.Column('undo_requested_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('undo_finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('undo_attempts', sa.Integer(), nullable=True),
    sa.Column('undo_lines', JSONB(none_as_null=True), nullable=True),
    sa.Column('undo_deleted', sa.BigInteger(), nullable=False),
    sa.Column('undo_restored', sa.BigInteger(), nullable=False),
    sa.Column('undo_left_alone', sa.BigInteger(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('finished_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('purged_at', sa.DateTime(timezone=True), nullable=True),
    sa.Column('journal_purged_at', sa.DateTime(timezone=True), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_spreadsheet_imports'),
    sa.UniqueConstraint('uuid', name='uq_spreadsheet_imports_uuid')
    )
    op.create_index('ix_spreadsheet_imports_by_created_at', 'spreadsheet_imports', ['by', 'created_at'], unique=False)
    op.create_index('ix_spreadsheet_imports_created_at', 'spreadsheet_imports', ['created_at'], unique=False)
    op.create_index('ix_spreadsheet_imports_organisation_id_context_id_created_at', 'spreadsheet_imports', ['organisation_id', 'context_id', 'created_at'], unique=False)
    op.create_index('ix_spreadsheet_imports_organisation_id_created_at', 'spreadsheet_imports', ['organisation_id', 'created_at'], unique=False)
    op.create_index('ix_spreadsheet_imports_organisation_id_filename', 'spreadsheet_imports', ['organisation_id', 'filename'], unique=False)
    op.create_index('ix_spreadsheet_imports_state_state_since', 'spreadsheet_imports', ['state', 'state_since'], unique=False)
    op.create_table('spreadsheet_journal',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('round', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('chunk', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('images', sa.LargeBinary(), nullable=False),
    sa.Column('undone', sa.Boolean(), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=True),
    sa.PrimaryKeyConstraint('import_id', 'round', 'chunk', name='pk_spreadsheet_journal')
    )
    op.create_table('spreadsheet_parked',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('line', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('offset', sa.BigInteger(), nullable=False),
    sa.Column('person', sa.Text(), nullable=True),
    sa.Column('person_key', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('import_id', 'line', name='pk_spreadsheet_parked')
    )
    op.create_table('spreadsheet_results',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('line', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('outcome', sa.Text(), nullable=False),
    sa.Column('message', sa.Text(), nullable=True),
    sa.Column('problems', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('import_id', 'line', name='pk_spreadsheet_results')
    )
    op.create_index('ix_spreadsheet_results_not_created', 'spreadsheet_results', ['import_id', 'outcome', 'line'], unique=False, postgresql_where=sa.text("outcome <> 'CREATED'"))
    op.create_table('spreadsheet_review_blocks',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('first_line', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('data', sa.LargeBinary(), nullable=False),
    sa.PrimaryKeyConstraint('import_id', 'first_line', name='pk_spreadsheet_review_blocks')
    )
    op.create_table('spreadsheet_review_operations',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('import_id', sa.BigInteger(), nullable=False),
    sa.Column('version', sa.BigInteger(), nullable=True),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('by', sa.Text(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('effect', sa.Text(), nullable=True),
    sa.Column('examples', sa.Text(), nullable=True),
    sa.Column('key', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_spreadsheet_review_operations'),
    sa.UniqueConstraint('import_id', 'version', name='uq_spreadsheet_review_operations_import_id_version')
    )
    op.create_index('ix_spreadsheet_review_operations_import_id_key', 'spreadsheet_review_operations', ['import_id', 'key'], unique=True)
    op.create_table('spreadsheet_review_problems',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('line', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('column_id', sa.Integer(), autoincrement=False, nullable=False),
    sa.Column('value', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('import_id', 'line', 'column_id', name='pk_spreadsheet_review_problems')
    )
    op.create_index('ix_spreadsheet_review_problems_import_id_column_id', 'spreadsheet_review_problems', ['import_id', 'column_id'], unique=False)
    op.create_table('spreadsheet_reviews',
    sa.Column('import_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('is_open', sa.Boolean(), nullable=False),
    sa.Column('rows', sa.BigInteger(), nullable=False),
    sa.Column('wrong', sa.BigInteger(), nullable=False),
    sa.Column('excluded', sa.BigInteger(), nullable=False),
    sa.Column('checked', sa.BigInteger(), nullable=False),
    sa.Column('check_failure', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('import_id', name='pk_spreadsheet_reviews')
    )
    op.create_table('spreadsheet_undo_conflicts',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('import_id', sa.BigInteger(), nullable=False),
    sa.Column('line', sa.BigInteger(), nullable=False),
    sa.Column('table_name', sa.Text(), nullable=False),
    sa.Column('row_id', sa.Text(), nullable=False),
    sa.Column('reason', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_spreadsheet_undo_conflicts')
    )
    op.create_index('ix_spreadsheet_undo_conflicts_import_id_id', 'spreadsheet_undo_conflicts', ['import_id', 'id'], unique=False)
    op.create_table('spreadsheet_uploads',
    sa.Column('blob_name', sa.Text(), nullable=False),
    sa.Column('uuid', sa.Text(), nullable=False),
    sa.Column('subject', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('blob_name', name='pk_spreadsheet_uploads')
    )
    op.create_index('ix_spreadsheet_uploads_created_at', 'spreadsheet_uploads', ['created_at'], unique=False)
    op.create_index('ix_spreadsheet_uploads_subject_created_at', 'spreadsheet_uploads', ['subject', 'created_at'], unique=False)
    op.create_index('ix_spreadsheet_uploads_uuid', 'spreadsheet_uploads', ['uuid'], unique=False)
    op.create_table('spreadsheet_values',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('import_id', sa.BigInteger(), nullable=False),
    sa.Column('field', sa.Text(), nullable=False),
    sa.Column('value', sa.Text(), nullable=False),
    sa.Column('search_key', sa.Text(), server_default=sa.text("''"), nullable=False),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('target_id', sa.BigInteger(), nullable=True),
    sa.Column('target_name', sa.Text(), nullable=True),
    sa.Column('create', sa.Boolean(), nullable=False),
    sa.Column('confidence', sa.Float(), nullable=False),
    sa.Column('alternatives', sa.Text(), nullable=False),
    sa.Column('rows', sa.BigInteger(), nullable=False),
    sa.Column('question', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('found_id', sa.BigInteger(), nullable=True),
    sa.Column('found_name', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('id', name='pk_spreadsheet_values'),
    sa.UniqueConstraint('import_id', 'field', 'value', name='uq_spreadsheet_values_import_id_field_value')
    )
    op.create_index('ix_spreadsheet_values_import_id_status_id', 'spreadsheet_values', ['import_id', 'status', 'id'], unique=False)
    op.create_table('stac_collections',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=True),
    sa.Column('content', JSONB(), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_stac_collections')
    )
    op.create_table('staged_crew_members',
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('employee_no', sa.Text(), nullable=False),
    sa.Column('valid_from', sa.Date(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('crew', sa.Text(), nullable=True),
    sa.Column('trade', sa.Text(), nullable=True),
    sa.Column('classification', sa.Text(), nullable=True),
    sa.Column('valid_to', sa.Date(), nullable=True),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('cells', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('load_id', 'project_id', 'employee_no', 'valid_from', name='pk_staged_crew_members')
    )
    op.create_table('staged_crew_trades',
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('straight_rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('over_rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('double_rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('burden', sa.Numeric(20, 6), nullable=True),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('cells', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('load_id', 'project_id', 'code', name='pk_staged_crew_trades')
    )
    op.create_table('staged_crews',
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('foreman', sa.Text(), nullable=True),
    sa.Column('shift', sa.Text(), nullable=True),
    sa.Column('calendar', sa.Text(), nullable=True),
    sa.Column('output_per_hour', sa.Numeric(20, 6), nullable=True),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('cells', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('load_id', 'project_id', 'code', name='pk_staged_crews')
    )
    op.create_table('staged_equipment',
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('category', sa.Text(), nullable=True),
    sa.Column('make', sa.Text(), nullable=True),
    sa.Column('model', sa.Text(), nullable=True),
    sa.Column('serial', sa.Text(), nullable=True),
    sa.Column('ownership', sa.Text(), nullable=True),
    sa.Column('rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('rate_unit', sa.Text(), nullable=True),
    sa.Column('fuel', sa.Text(), nullable=True),
    sa.Column('status', sa.Text(), nullable=True),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('cells', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('load_id', 'project_id', 'code', name='pk_staged_equipment')
    )
    op.create_table('staged_estimate_lines',
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('service_id', sa.Text(), nullable=False),
    sa.Column('item_code', sa.Text(), nullable=False),
    sa.Column('section', sa.Text(), nullable=False),
    sa.Column('sequence', sa.BigInteger(), nullable=False),
    sa.Column('cost_code', sa.Text(), nullable=True),
    sa.Column('wbs_code', sa.Text(), nullable=True),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('unit', sa.Text(), nullable=True),
    sa.Column('quantity', sa.Numeric(20, 6), nullable=True),
    sa.Column('unit_rate', sa.Numeric(20, 6), nullable=True),
    sa.Column('man_hours', sa.Numeric(20, 6), nullable=True),
    sa.Column('labour_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('material_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('equipment_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('subcontract_cost', sa.Numeric(20, 6), nullable=True),
    sa.Column('markup', sa.Numeric(20, 6), nullable=True),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('cells', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('load_id', 'project_id', 'service_id', 'item_code', 'section', 'sequence', name='pk_staged_estimate_lines')
    )
    op.create_table('staged_materials',
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('code', sa.Text(), nullable=False),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('unit', sa.Text(), nullable=True),
    sa.Column('price', sa.Numeric(20, 6), nullable=True),
    sa.Column('currency', sa.Text(), nullable=True),
    sa.Column('supplier', sa.Text(), nullable=True),
    sa.Column('lead_time_days', sa.Integer(), nullable=True),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('cells', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('load_id', 'project_id', 'code', name='pk_staged_materials')
    )
    op.create_table('staged_mto_lines',
    sa.Column('load_id', sa.BigInteger(), nullable=False),
    sa.Column('project_id', sa.Text(), nullable=False),
    sa.Column('service_id', sa.Text(), nullable=False),
    sa.Column('drawing', sa.Text(), nullable=False),
    sa.Column('commodity_code', sa.Text(), nullable=False),
    sa.Column('size', sa.Text(), nullable=False),
    sa.Column('sequence', sa.BigInteger(), nullable=False),
    sa.Column('line_no', sa.Text(), nullable=True),
    sa.Column('spool', sa.Text(), nullable=True),
    sa.Column('area', sa.Text(), nullable=True),
    sa.Column('system', sa.Text(), nullable=True),
    sa.Column('spec', sa.Text(), nullable=True),
    sa.Column('description', sa.Text(), nullable=True),
    sa.Column('quantity', sa.Numeric(20, 6), nullable=True),
    sa.Column('unit', sa.Text(), nullable=True),
    sa.Column('revision', sa.Text(), nullable=True),
    sa.Column('source_line', sa.Integer(), nullable=False),
    sa.Column('cells', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('load_id', 'project_id', 'service_id', 'drawing', 'commodity_code', 'size', 'sequence', name='pk_staged_mto_lines')
    )
    op.create_table('tag_dedupe',
    sa.Column('case_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('batch_id', sa.BigInteger(), autoincrement=False, nullable=False),
    sa.Column('tag_key', sa.Text(), autoincrement=False, nullable=False),
    sa.Column('tag', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('case_id', 'batch_id', 'tag_key', name='pk_tag_dedupe')
    )
    op.create_table('target_images',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.Text(), nullable=False),
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('work', sa.Text(), nullable=False),
    sa.Column('step', sa.Text(), nullable=True),
    sa.Column('images', sa.LargeBinary(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_target_images')
    )
    op.create_index('ix_target_images_created_at', 'target_images', ['created_at'], unique=False)
    op.create_index('ix_target_images_run_id', 'target_images', ['run', 'id'], unique=False)
    op.create_table('transfer_turns',
    sa.Column('key', sa.Text(), nullable=False),
    sa.Column('run', sa.Text(), nullable=False),
    sa.Column('arrived', sa.DateTime(timezone=True), nullable=False),
    sa.Column('begun', sa.Boolean(), nullable=False),
    sa.PrimaryKeyConstraint('key', 'run', name='pk_transfer_turns')
    )
    op.create_index('ix_transfer_turns_run', 'transfer_turns', ['run'], unique=False)
    op.create_table('transfers',
    sa.Column('transfer_id', sa.Text(), nullable=False),
    sa.Column('digest', sa.Text(), nullable=True),
    sa.Column('run', sa.Text(), nullable=True),
    sa.Column('status', sa.Text(), nullable=False),
    sa.Column('at', sa.DateTime(timezone=True), nullable=False),
    sa.Column('source', sa.Text(), nullable=False),
    sa.Column('event_id', sa.Text(), nullable=False),
    sa.Column('account_id', sa.Text(), nullable=True),
    sa.Column('organisation_id', sa.BigInteger(), nullable=True),
    sa.Column('type', sa.Text(), nullable=True),
    sa.Column('subject', sa.Text(), nullable=True),
    sa.Column('queue', sa.Text(), nullable=True),
    sa.Column('job', sa.Text(), nullable=True),
    sa.Column('file', sa.Text(), nullable=True),
    sa.Column('reason', sa.Text(), nullable=True),
    sa.Column('by', sa.Text(), nullable=True),
    sa.Column('receipt', sa.Text(), nullable=True),
    sa.Column('kept', sa.Text(), nullable=True),
    sa.Column('size', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('transfer_id', name='pk_transfers')
    )
    op.create_index('ix_transfers_account_id_at', 'transfers', ['account_id', 'at'], unique=False)
    op.create_index('ix_transfers_at', 'transfers', ['at'], unique=False)
    op.create_index('ix_transfers_organisation_id_at', 'transfers', ['organisation_id', 'at'], unique=False)
    op.create_index('ix_transfers_queue_at', 'transfers', ['queue', 'at'], unique=False)
    op.create_index('ix_transfers_run', 'transfers', ['run'], unique=False)
    op.create_index('ix_transfers_status_at', 'transfers', ['status', 'at'], unique=False)
    op.create_table('type_versions',
    sa.Column('digest', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('declaration', sa.Text(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('digest', name='pk_type_versions')
    )
    op.create_index('ix_type_versions_name', 'type_versions', ['name'], unique=False)
    op.create_table('watch_states',
    sa.Column('watch', sa.Text(), nullable=False),
    sa.Column('record', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('watch', name='pk_watch_states')
    )
    op.create_table('watched_files',
    sa.Column('watch', sa.Text(), nullable=False),
    sa.Column('path', sa.Text(), nullable=False),
    sa.Column('size', sa.BigInteger(), nullable=False),
    sa.Column('changed', sa.DateTime(timezone=True), nullable=True),
    sa.Column('tag', sa.Text(), nullable=True),
    sa.Column('since', sa.DateTime(timezone=True), nullable=False),
    sa.Column('event', sa.Text(), nullable=True),
    sa.Column('problem', sa.Text(), nullable=True),
    sa.Column('vanished', sa.DateTime(timezone=True), nullable=True),
    sa.PrimaryKeyConstraint('watch', 'path', name='pk_watched_files')
    )
    op.create_index('ix_watched_files_watch_vanished', 'watched_files', ['watch', 'vanished'], unique=False)
    op.create_table('webhook_deliveries',
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('attempt', sa.Integer(), nullable=False),
    sa.Column('number', sa.Integer(), nullable=False),
    sa.Column('redelivery', sa.Integer(), nullable=False),
    sa.Column('delivery_attempt', sa.Integer(), nullable=False),
    sa.Column('ordered', sa.Text(), nullable=False),
    sa.Column('result', sa.Text(), nullable=False),
    sa.Column('seconds', sa.Float(), nullable=False),
    sa.Column('sent_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('job_id', 'attempt', 'number', 'redelivery', 'delivery_attempt', name='pk_webhook_deliveries')
    )
    op.create_index('ix_webhook_deliveries_job_id_sent_at', 'webhook_deliveries', ['job_id', 'sent_at'], unique=False)
    op.create_table('webhook_hosts',
    sa.Column('host', sa.Text(), nullable=False),
    sa.Column('failures', sa.BigInteger(), nullable=False),
    sa.Column('open_until', sa.DateTime(timezone=True), nullable=True),
    sa.Column('updated_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('host', name='pk_webhook_hosts')
    )
    op.create_table('webhook_messages',
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('body', sa.LargeBinary(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('id', name='pk_webhook_messages')
    )
    op.create_table('webhook_secrets',
    sa.Column('reference', sa.Text(), nullable=False),
    sa.Column('job_id', sa.Text(), nullable=False),
    sa.Column('encrypted', sa.LargeBinary(), nullable=False),
    sa.Column('created_at', sa.DateTime(timezone=True), nullable=False),
    sa.PrimaryKeyConstraint('reference', name='pk_webhook_secrets')
    )
    op.create_table('custom_list_items',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('custom_list_id', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['custom_list_id'], ['custom_lists.id'], name='fk_custom_list_items_custom_list_id'),
    sa.PrimaryKeyConstraint('id', name='pk_custom_list_items'),
    sa.UniqueConstraint('custom_list_id', 'name', name='uq_custom_list_items_custom_list_id_name')
    )
    op.create_table('event_categories',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('event_id', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('spellings', sa.Text(), nullable=False),
    sa.ForeignKeyConstraint(['event_id'], ['events.id'], name='fk_event_categories_event_id'),
    sa.PrimaryKeyConstraint('id', name='pk_event_categories'),
    sa.UniqueConstraint('event_id', 'name', name='uq_event_categories_event_id_name')
    )
    op.create_table('persons',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=False),
    sa.Column('person_key', sa.Text(), nullable=False),
    sa.Column('first_name', sa.Text(), nullable=True),
    sa.Column('last_name', sa.Text(), nullable=True),
    sa.Column('email', sa.Text(), nullable=True),
    sa.Column('birthdate', sa.Date(), nullable=True),
    sa.Column('gender', sa.Text(), nullable=True),
    sa.Column('phone', sa.Text(), nullable=True),
    sa.Column('street', sa.Text(), nullable=True),
    sa.Column('postcode', sa.Text(), nullable=True),
    sa.Column('city', sa.Text(), nullable=True),
    sa.Column('country_id', sa.Integer(), nullable=True),
    sa.Column('club', sa.Text(), nullable=True),
    sa.Column('name_key', sa.Text(), nullable=True),
    sa.Column('mail_key', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['country_id'], ['countries.id'], name='fk_persons_country_id'),
    sa.PrimaryKeyConstraint('id', name='pk_persons'),
    sa.UniqueConstraint('organisation_id', 'person_key', name='uq_persons_organisation_id_person_key')
    )
    op.create_index('ix_persons_organisation_id_mail_key', 'persons', ['organisation_id', 'mail_key'], unique=False)
    op.create_index('ix_persons_organisation_id_name_key', 'persons', ['organisation_id', 'name_key'], unique=False)
    op.create_table('races',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('event_id', sa.BigInteger(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('starts_at', sa.DateTime(timezone=True), nullable=True),
    sa.ForeignKeyConstraint(['event_id'], ['events.id'], name='fk_races_event_id'),
    sa.PrimaryKeyConstraint('id', name='pk_races')
    )
    op.create_index('ix_races_event_id', 'races', ['event_id'], unique=False)
    op.create_table('stac_items',
    sa.Column('collection', sa.Text(), nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('starts', sa.DateTime(timezone=True), nullable=False),
    sa.Column('ends', sa.DateTime(timezone=True), nullable=False),
    sa.Column('area', Box(), nullable=False),
    sa.Column('organisation_id', sa.BigInteger(), nullable=True),
    sa.Column('content', JSONB(), nullable=False),
    sa.ForeignKeyConstraint(['collection'], ['stac_collections.id'], name='fk_stac_items_collection'),
    sa.PrimaryKeyConstraint('collection', 'id', name='pk_stac_items')
    )
    op.create_index('ix_stac_items_area', 'stac_items', ['area'], unique=False, postgresql_using='gist')
    op.create_index('ix_stac_items_starts_collection_id', 'stac_items', ['starts', 'collection', 'id'], unique=False)
    op.create_table('event_participants',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('event_id', sa.BigInteger(), nullable=False),
    sa.Column('person_id', sa.BigInteger(), nullable=False),
    sa.Column('category_id', sa.BigInteger(), nullable=True),
    sa.Column('bib', sa.Text(), nullable=True),
    sa.Column('team', sa.Text(), nullable=True),
    sa.Column('registered_on', sa.Date(), nullable=True),
    sa.Column('notes', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['category_id'], ['event_categories.id'], name='fk_event_participants_category_id'),
    sa.ForeignKeyConstraint(['event_id'], ['events.id'], name='fk_event_participants_event_id'),
    sa.ForeignKeyConstraint(['person_id'], ['persons.id'], name='fk_event_participants_person_id'),
    sa.PrimaryKeyConstraint('id', name='pk_event_participants'),
    sa.UniqueConstraint('event_id', 'person_id', name='uq_event_participants_event_id_person_id')
    )
    op.create_index('ix_event_participants_event_id_bib', 'event_participants', ['event_id', 'bib'], unique=False)
    op.create_index('ix_event_participants_person_id', 'event_participants', ['person_id'], unique=False)
    op.create_table('memberships',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('membership_period_id', sa.BigInteger(), nullable=False),
    sa.Column('person_id', sa.BigInteger(), nullable=False),
    sa.Column('membership_type_id', sa.BigInteger(), nullable=True),
    sa.Column('member_no', sa.Text(), nullable=True),
    sa.Column('joined_on', sa.Date(), nullable=True),
    sa.Column('left_on', sa.Date(), nullable=True),
    sa.Column('fee', sa.Numeric(20, 6), nullable=True),
    sa.Column('notes', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['membership_period_id'], ['membership_periods.id'], name='fk_memberships_membership_period_id'),
    sa.ForeignKeyConstraint(['membership_type_id'], ['membership_types.id'], name='fk_memberships_membership_type_id'),
    sa.ForeignKeyConstraint(['person_id'], ['persons.id'], name='fk_memberships_person_id'),
    sa.PrimaryKeyConstraint('id', name='pk_memberships'),
    sa.UniqueConstraint('membership_period_id', 'person_id', name='uq_memberships_membership_period_id_person_id')
    )
    op.create_index('ix_memberships_person_id', 'memberships', ['person_id'], unique=False)
    op.create_table('race_results',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('race_id', sa.BigInteger(), nullable=False),
    sa.Column('person_id', sa.BigInteger(), nullable=False),
    sa.Column('category_id', sa.BigInteger(), nullable=True),
    sa.Column('bib', sa.Text(), nullable=True),
    sa.Column('finish_time_ms', sa.BigInteger(), nullable=True),
    sa.Column('rank', sa.Integer(), nullable=True),
    sa.Column('status', sa.Text(), nullable=True),
    sa.ForeignKeyConstraint(['category_id'], ['event_categories.id'], name='fk_race_results_category_id'),
    sa.ForeignKeyConstraint(['person_id'], ['persons.id'], name='fk_race_results_person_id'),
    sa.ForeignKeyConstraint(['race_id'], ['races.id'], name='fk_race_results_race_id'),
    sa.PrimaryKeyConstraint('id', name='pk_race_results'),
    sa.UniqueConstraint('race_id', 'person_id', name='uq_race_results_race_id_person_id')
    )
    op.create_index('ix_race_results_person_id', 'race_results', ['person_id'], unique=False)
    op.create_index('ix_race_results_race_id_bib', 'race_results', ['race_id', 'bib'], unique=False)
    op.create_table('custom_list_values',
    sa.Column('id', sa.BigInteger(), nullable=False),
    sa.Column('participant_id', sa.BigInteger(), nullable=False),
    sa.Column('custom_list_id', sa.BigInteger(), nullable=False),
    sa.Column('custom_list_item_id', sa.BigInteger(), nullable=False),
    sa.ForeignKeyConstraint(['custom_list_id'], ['custom_lists.id'], name='fk_custom_list_values_custom_list_id'),
    sa.ForeignKeyConstraint(['custom_list_item_id'], ['custom_list_items.id'], name='fk_custom_list_values_custom_list_item_id'),
    sa.ForeignKeyConstraint(['participant_id'], ['event_participants.id'], name='fk_custom_list_values_participant_id'),
    sa.PrimaryKeyConstraint('id', name='pk_custom_list_values'),
    sa.UniqueConstraint('participant_id', 'custom_list_id', name='uq_custom_list_values_participant_id_custom_list_id')
    )
    rows = country_rows()
    op.bulk_insert(sa.table("countries", *map(sa.Column, rows[0])), rows)
    for statement in statements_of("0001_runs.sql"):
        op.get_bind().exec_driver_sql(statement)
