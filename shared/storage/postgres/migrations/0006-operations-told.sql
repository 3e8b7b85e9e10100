-- What a client is told of an operation: where it stands and what it answered in the end.
alter table operations
  add column session text,
  add column progress_done integer not null default 0,
  add column progress_total integer not null default 0,
  -- The HTTP status that the outcome answers with.
  add column status smallint;

alter table operations drop constraint operations_state_check;
alter table operations add constraint operations_state_check
  check (state in ('accepted', 'running', 'done', 'failed', 'cancelled'));

drop index operations_unfinished;
create index operations_unfinished on operations (created_at) where state in ('accepted', 'running');

-- The first answer to a request with an Idempotency-Key, per key and route, for a day.
create table idempotency (
  key_hash     bytea       not null,
  route        text        not null,
  idempotency  text        not null,
  -- SHA-256 of what was asked; the same key with another request is refused.
  body_hash    bytea       not null,
  -- The operation id this request works under, so that a second try after a crash does the same work.
  operation    uuid        not null,
  -- Null while the request runs; sealed, since an answer may hold a raw key.
  answer       text,
  -- A request that has not answered by then has died with its process.
  locked_until timestamptz not null,
  created_at   timestamptz not null default now(),
  primary key (key_hash, route, idempotency)
);

create index idempotency_by_age on idempotency (created_at);
