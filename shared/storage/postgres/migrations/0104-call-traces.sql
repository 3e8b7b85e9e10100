-- What each model call was told: ids of memories, places and digests, never a word of them. The texts are read
-- from the vault when a trace is read, so that what is deleted there is not shown here.
create table call_traces (
  -- The operation of the call.
  id            uuid        primary key,
  vault         uuid        not null,
  epoch         integer     not null,
  -- The session whose memories were asked; null: the core alone.
  session       text,
  session_epoch integer     not null,
  created_at    timestamptz not null default now(),
  expires_at    timestamptz not null,
  trace         jsonb       not null
);
create index call_traces_by_vault on call_traces (vault, id);
create index call_traces_by_expiry on call_traces (expires_at);

alter table accounts
  add column traces text not null default 'texts' check (traces in ('off', 'ids', 'texts')),
  add column trace_days smallint not null default 7 check (trace_days between 1 and 365),
  -- Set when traces are to end earlier than they were written to; null once all do.
  add column traces_shortened_at timestamptz;
create index accounts_with_shortened_traces on accounts (traces_shortened_at)
  where traces_shortened_at is not null;
