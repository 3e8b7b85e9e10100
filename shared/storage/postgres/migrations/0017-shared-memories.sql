-- What somebody sets out to do to a shared memory, written down before it is done: whatever dies in
-- between, it is known what was meant, by whom, and whether it came about. Kept for 30 days with the
-- words from before and after, so that it can be undone.
create table shared_writes (
  -- Derived from the operation and the memory; the document bears it once the write has come about.
  id         uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  -- Where the document is, and the epoch of that vault.
  vault      uuid        not null,
  epoch      integer     not null,
  memory     uuid        not null,
  kind       text        not null
             check (kind in ('add', 'edit', 'delete', 'review', 'undo', 'restore')),
  -- The admin's email, or how the organization calls the member.
  actor      text        not null,
  actions    text[]      not null,
  -- Text, tags and so on; null where there was, or is, no memory.
  before     jsonb,
  after      jsonb,
  state      text        not null default 'pending' check (state in ('pending', 'done')),
  created_at timestamptz not null default now(),
  -- When a pending one is looked after.
  due_at     timestamptz not null default now() + interval '30 seconds'
);

-- Finds what was left pending.
create index shared_writes_pending on shared_writes (due_at) where state = 'pending';
-- The history of one memory, and what of it is pending.
create index shared_writes_of_memory on shared_writes (memory, created_at);
-- Forgets words after 30 days.
create index shared_writes_by_age on shared_writes (created_at);

-- Who changed what in the shared memory, for good: one row per change that came about, written in the
-- transaction that makes the change visible.
create table audit_events (
  id         uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  memory     uuid        not null,
  action     text        not null check (action in ('create', 'update', 'delete', 'retag')),
  actor      text        not null,
  write      uuid        not null,
  created_at timestamptz not null,
  unique (write, action)
);

-- The newest of an organization, and of one memory.
create index audit_events_of_org on audit_events (org, created_at desc, id desc);
create index audit_events_of_memory on audit_events (org, memory, created_at desc, id desc);

-- How many shared memories bear which tags: what somebody may see of a vault is some of these sets.
create table shared_tag_sets (
  vault    uuid    not null references vaults (id) on delete cascade,
  -- The tags in order, as a JSON array.
  tag_set  text    not null,
  memories integer not null,
  primary key (vault, tag_set)
);

-- What the shared memory gave whom and kept from them, per question; for the admin. The newest few
-- hundred of an organization are kept.
create table shared_retrievals (
  id           uuid        primary key,
  org          uuid        not null references orgs (id) on delete cascade,
  author       text        not null,
  allowed_tags text[]      not null,
  wildcard     boolean     not null,
  permitted    integer     not null,
  dropped      integer     not null,
  -- Some of what was kept from them: [{"id", "tags"}].
  sample       jsonb       not null,
  created_at   timestamptz not null
);

create index shared_retrievals_of_org on shared_retrievals (org, created_at desc, id desc);
