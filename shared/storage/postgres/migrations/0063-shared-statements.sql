-- False: what the member says, or says with this key, is stored for the member alone.
alter table org_users add column shares boolean not null default true;
alter table memory_keys add column shares boolean not null default true;

-- What the shared memory has from whom: one row for each fact of a member that was added, changed a memory
-- or was in one already. Members list theirs and take them back.
create table shared_statements (
  id           uuid        primary key,
  org          uuid        not null references orgs (id) on delete cascade,
  org_user     uuid        not null references org_users (id) on delete cascade,
  -- How the organization called the member at the time.
  author       text        not null,
  -- The turn it was said in, and its place in the passes of that turn.
  turn         uuid        not null,
  position     integer     not null,
  memory       uuid        not null,
  action       text        not null check (action in ('ADD', 'UPDATE', 'NONE')),
  -- The memory had later words: nothing was changed.
  outdated     boolean     not null default false,
  text         text        not null,
  said_at      timestamptz not null,
  recorded_at  timestamptz not null default clock_timestamp(),
  -- When the memory was removed; null again once it is restored.
  removed_at   timestamptz,
  -- When the member took it back: no list has it from then on, and the memory follows.
  withdrawn_at timestamptz,
  unique (turn, position)
);

-- Lists those of a member, newest first.
create index shared_statements_of_user on shared_statements (org_user, said_at desc, id desc)
  where removed_at is null and withdrawn_at is null;
-- Who else said what a memory says.
create index shared_statements_of_memory on shared_statements (memory);
-- Finds what is left to do, and what is over.
create index shared_statements_withdrawn on shared_statements (withdrawn_at)
  where withdrawn_at is not null;
create index shared_statements_removed on shared_statements (removed_at)
  where removed_at is not null;

insert into shared_statements
  (id, org, org_user, author, turn, position, memory, action, outdated, text, said_at, recorded_at)
select gen_random_uuid(), t.org, t.org_user, t.author, t.id, d.n - 1, (d.decision->>'mem_id')::uuid,
       d.decision->>'action', coalesce((d.decision->>'outdated')::boolean, false),
       coalesce(t.pass2->(d.n::int - 1)->>'text', d.decision->>'text'),
       date_trunc('milliseconds', coalesce(t.said_at, t.created_at)), t.finished_at
from org_turns t, jsonb_array_elements(t.pass3) with ordinality d(decision, n)
where t.finished_at is not null and d.decision->>'mem_id' is not null;

-- A member takes back what they said.
alter table shared_writes drop constraint shared_writes_kind_check;
alter table shared_writes add constraint shared_writes_kind_check
  check (kind in ('add', 'edit', 'delete', 'review', 'undo', 'restore', 'withdraw'));
