-- Exchanges under way: what a user has said, from before a model is asked until its answer has ended.
-- Small and short-lived, a row per call; the process that serves the call shows every half minute that
-- it still does. A row nobody has renewed for two minutes belongs to a process that died.
create table open_exchanges (
  -- The id under which the exchange will be promised.
  operation     uuid        primary key,
  account       uuid        not null references accounts (id),
  vault         uuid        not null references vaults (id) on delete cascade,
  key_hash      bytea       not null,
  session       text,
  -- As they were when it was opened; a later one makes it void.
  epoch         integer     not null,
  session_epoch integer     not null,
  -- The embedding model it is to be stored with, and the provider-prefixed model that was asked.
  embeddings    text        not null,
  model         text        not null,
  -- [{role, text, at, speaker}]: what is stored of the user, whatever becomes of the answer.
  said          jsonb       not null,
  renewed_at    timestamptz not null default now()
);
