-- Memories that are over at some time: see shared/vault/delete/purge-expired.ts.
alter table vaults
  -- Nothing that the vault holds is over before this; null where nothing ever is. It may be too early,
  -- never too late.
  add column next_expiry timestamptz;

-- Vaults that nobody asks, and that hold what is over.
create index vaults_next_expiry on vaults (next_expiry) where next_expiry is not null;

-- Memories with an end that somebody is writing at this moment: whoever looks for the earliest end of a
-- vault may not find them yet. A row is of no use once they are settled, or
-- when no job can still be writing.
create table announced_expiries (
  -- Of the work that writes them.
  id           uuid        primary key,
  vault        uuid        not null references vaults (id) on delete cascade,
  expires_at   timestamptz not null,
  announced_at timestamptz not null default clock_timestamp()
);

create index announced_expiries_of on announced_expiries (vault);

-- The newest removal of what was over in a vault.
create index operations_expiring on operations (vault, id) where kind = 'expire';

-- Days that memories of the account are kept, from the moment they are stored; null: for good.
alter table accounts
  add column retention_days integer check (retention_days between 1 and 36500);

-- When what is said in a model call is to be over, where the call says so.
alter table open_exchanges add column expires_at timestamptz;

-- Accounts whose memories are being brought in line with another retention, a page at a time.
create table retentions (
  operation uuid    primary key references operations (id) on delete cascade,
  account   uuid    not null,
  -- As it was decided; when the account decides otherwise meanwhile, this one ends.
  days      integer,
  step      integer not null default 0,
  -- The vault of the last page, and its last memory; null at the beginning of the next vault.
  vault     uuid,
  after     json,
  looked    integer not null default 0,
  changed   integer not null default 0
);

-- An event of the account as other changes of its policy are (0024); one that changes both tells once.
create function note_retention_event() returns trigger language plpgsql as $$
begin
  perform note_account_event(new.id, 'policy.changed', 'account');
  return null;
end $$;

create trigger account_retention_event after update of retention_days on accounts for each row
  when (new.retention_days is distinct from old.retention_days
        and new.redaction is not distinct from old.redaction)
  execute function note_retention_event();
