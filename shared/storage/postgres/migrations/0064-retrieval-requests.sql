-- What one request was given of the shared memory, and what was kept from it that is relevant to its
-- question. The question stands here until a worker has looked that up, a minute or so.
alter table shared_retrievals
  add column request  text  check (request in ('search', 'prepare', 'date-search')),
  -- Ids, best first.
  add column returned jsonb not null default '[]',
  -- JSON of {"text", "limit"}, sealed; null once it was looked up, and where nothing was hidden or asked.
  add column question text,
  -- [{"id", "tags"}], best first; null as long as it is unknown.
  add column denied   jsonb;

create index shared_retrievals_asked on shared_retrievals (created_at) where question is not null;
