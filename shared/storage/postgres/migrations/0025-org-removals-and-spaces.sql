-- Roles and tags that were removed, by the request that removed them: one that is sent again because its
-- answer was lost is answered as it would have been. Kept as long as Idempotency-Keys are.
create table policy_removals (
  operation  uuid        primary key,
  org        uuid        not null references orgs (id) on delete cascade,
  created_at timestamptz not null default now()
);

-- Takes an organization's along.
create index policy_removals_of_org on policy_removals (org);
-- Finds those that nobody asks about any more.
create index policy_removals_by_age on policy_removals (created_at);

-- The vault space in which every shared memory can be found; null as long as nobody has looked. Where it is
-- not that of the service's embedding model, the shared vault is on its way there.
alter table orgs add column space text;
