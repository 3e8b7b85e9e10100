-- What was cleared. It is erased by a job, and then swept: work that was under way may still have
-- written there, unseen.
create table erasures (
  vault      uuid        not null references vaults (id) on delete cascade,
  -- The session vault that was cleared; '' is everything of the vault.
  session    text        not null,
  -- Documents of this epoch, or of this epoch of the session, and of earlier ones no longer exist.
  up_to      integer     not null,
  cleared_at timestamptz not null default now(),
  -- The next sweep, each twice as far from the clearing as the one before; infinity until it is erased.
  due_at     timestamptz not null,
  primary key (vault, session)
);

-- Finds what is to be swept.
create index erasures_due on erasures (due_at);

-- Days on which a vault buried memories: tombstones keep ids taken, and go once no job can live as long.
create table burials (
  day   date not null,
  vault uuid not null references vaults (id) on delete cascade,
  primary key (day, vault)
);

-- Sweeps that walk a table a page at a time: where the page before ended.
create table sweep_positions (
  sweep text primary key,
  after uuid not null
);

-- Finds operations that ended long ago.
create index operations_finished on operations (finished_at) where finished_at is not null;
