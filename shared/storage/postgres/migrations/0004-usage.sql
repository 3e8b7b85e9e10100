-- One row per billed request, under the request's or operation's id: writing it twice is writing it once.
create table usage_events (
  id             uuid        primary key,
  account        uuid        not null references accounts (id),
  vault          uuid        not null references vaults (id),
  key_hash       bytea       not null,
  kind           text        not null,
  -- Provider-prefixed, where the request named one.
  model          text,
  session        text,
  input_tokens   integer     not null default 0,
  output_tokens  integer     not null default 0,
  -- What memory was billed: tokens stored or retrieved.
  memory_tokens  integer     not null default 0,
  at             timestamptz not null default now()
);

-- Sums one key's usage over a period.
create index usage_events_of_key on usage_events (key_hash, at);
