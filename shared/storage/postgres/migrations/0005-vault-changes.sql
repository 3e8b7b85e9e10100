-- What each revision of a vault changed, so that images held in other processes catch up by reading
-- only that. Old rows may be dropped at any time: an image older than the log is loaded anew.
create table vault_changes (
  vault    uuid    not null references vaults (id) on delete cascade,
  revision bigint  not null,
  -- The session vault that changed; '' is the core vault.
  session  text    not null,
  stored   uuid[]  not null default '{}',
  removed  uuid[]  not null default '{}',
  -- Everything in this session vault went.
  cleared  boolean not null default false,
  at       timestamptz not null default now(),
  primary key (vault, revision, session)
);

-- Trims the log.
create index vault_changes_by_age on vault_changes (at);

-- Sessions that were cleared at least once; a session without a row is at epoch 0.
create table sessions (
  vault   uuid    not null references vaults (id) on delete cascade,
  session text    not null,
  epoch   integer not null,
  primary key (vault, session)
);
