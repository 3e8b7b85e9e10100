-- A batch of memories lent to one client for consolidation. It is leased until it is committed or runs
-- out. One that ran out needs no cleaning up: every reader compares expires_at with the clock.
create table leases (
  -- The ticket that commits it: the id of its checkout.
  batch        uuid        primary key,
  vault        uuid        not null references vaults (id) on delete cascade,
  -- Of the vault at checkout; once everything was deleted the batch does not exist either.
  epoch        integer     not null,
  -- Of the memories lent; what they become is one above.
  tier         smallint    not null check (tier in (1, 2)),
  -- Embedding model that names the vault space they were taken from, and that the entries go to.
  model        text        not null,
  -- Oldest first.
  source_ids   uuid[]      not null check (cardinality(source_ids) > 0),
  -- First and last moment that the sources are about, epoch milliseconds.
  covers_from  bigint      not null,
  covers_to    bigint      not null,
  -- committing: past the point of no return, the reflections are on their way into the memory store.
  state        text        not null default 'leased'
               check (state in ('leased', 'committing', 'committed')),
  expires_at   timestamptz not null,

  -- [{id, importance}] as first answered, so that a commit sent again says the same.
  created      jsonb       check ((created is null) = (state = 'leased')),
  -- Sources that were still there to be marked.
  consolidated integer,
  committed_at timestamptz check ((committed_at is null) = (state <> 'committed'))
);

-- A checkout asks which memories of a vault are lent out.
create index leases_open on leases (vault, tier) where state <> 'committed';
