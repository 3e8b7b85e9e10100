-- Every piece of queued work a client was promised, under the id its job carries.
create table operations (
  id          uuid        primary key,
  account     uuid        not null references accounts (id),
  vault       uuid        not null references vaults (id),
  key_hash    bytea       not null,
  kind        text        not null,
  -- Read with the vault when the work was accepted; a later epoch makes the work void.
  epoch       integer     not null,
  state       text        not null default 'accepted'
              check (state in ('accepted', 'done', 'failed', 'cancelled')),
  -- Somebody waits for it: settling it sends a notification.
  awaited     boolean     not null default false,
  -- What the work answered in the end, as the client sees it.
  outcome     jsonb,
  created_at  timestamptz not null default now(),
  finished_at timestamptz
);

-- Lists the operations of an account, newest first.
create index operations_of_account on operations (account, id desc);
-- Finds accepted work whose job is gone.
create index operations_unfinished on operations (created_at) where state = 'accepted';
