-- Accounts that were erased, or are being erased. What stays of one is this row, its id and the ids of
-- its empty vaults: those keep late work out, and go when no job can be old enough to write there.
create table account_erasures (
  -- The operation's UUIDv7, and the receipt's id.
  id           uuid        primary key,
  account      uuid        not null unique,
  -- SHA-256 of id and email: whoever knows both can show that they belong together.
  proof        text        not null,
  vaults       uuid[]      not null,
  -- What went when it was asked: {"keys": 3, …}.
  counts       jsonb       not null,
  requested_at timestamptz not null default now(),
  finished_at  timestamptz,
  -- Signed.
  receipt      text,
  -- When the ids went.
  purged_at    timestamptz
);

-- Whose ids are still there.
create index account_erasures_unpurged on account_erasures (finished_at) where purged_at is null;

-- The audit of an organization is a chain: each event carries a hash over itself and the event before,
-- so that none can be changed, removed or slipped in unseen. See shared/org/audit-chain.ts, which counts
-- the same hashes.
create table audit_heads (
  org      uuid   primary key references orgs (id) on delete cascade,
  -- How many events there are, and the hash of the last.
  position bigint not null,
  hash     bytea  not null
);

alter table audit_events
  -- From 1, without a gap, within the organization.
  add column position bigint,
  add column hash     bytea;

create function chain_audit_event() returns trigger language plpgsql as $$
declare head audit_heads;
begin
  insert into audit_heads (org, position, hash) values (new.org, 0, '') on conflict do nothing;
  -- Whoever else adds an event to this organization waits here.
  select * into head from audit_heads where org = new.org for update;
  new.position := head.position + 1;
  new.hash := sha256(head.hash || convert_to(concat_ws(E'\n',
    new.position, new.org, new.id, new.memory, new.action, new.write,
    floor(extract(epoch from new.created_at) * 1000000)::bigint, new.actor), 'UTF8'));
  update audit_heads set position = new.position, hash = new.hash where org = new.org;
  return new;
end $$;

create trigger chain_audit_event before insert on audit_events for each row
  execute function chain_audit_event();

-- Events from before there was a chain get their links in the order they happened.
do $$
declare event audit_events;
begin
  for event in select * from audit_events order by created_at, id loop
    delete from audit_events where id = event.id;
    insert into audit_events values (event.*);
  end loop;
end $$;

alter table audit_events alter column position set not null, alter column hash set not null;
create unique index audit_events_chain on audit_events (org, position);
