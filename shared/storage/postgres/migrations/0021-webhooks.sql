-- Addresses that an account wants to be told at.
create table webhooks (
  id              uuid        primary key,
  account         uuid        not null references accounts (id) on delete cascade,
  url             text        not null,
  description     text        not null,
  events          text[]      not null,
  -- What messages are signed with, and until when also with the secret before.
  secret          text        not null,
  former_secret   text,
  former_until    timestamptz,
  -- Since when every message has failed.
  failing_since   timestamptz,
  -- Nothing is sent any more, and why: by its owner, after days of failures, or it said 410.
  disabled_at     timestamptz,
  disabled_reason text        check (disabled_reason in ('owner', 'failures', 'gone')),
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now()
);

-- Who is to be told.
create index webhooks_of_account on webhooks (account);

-- The outbox and the log: one row per message and address, written by the transaction that makes the
-- event true. It is told at least once, to an address that is up within three days.
create table webhook_deliveries (
  id         uuid        primary key default gen_random_uuid(),
  webhook    uuid        not null references webhooks (id) on delete cascade,
  event      text        not null,
  -- Ids, states and counts: never what is remembered.
  data       jsonb       not null,
  state      text        not null default 'pending' check (state in ('pending', 'delivered', 'failed')),
  -- When a pending one is sent, or, while somebody is sending it, when they are taken to have died.
  due_at     timestamptz not null default now(),
  -- Since it was written, or replayed.
  attempts   integer     not null default 0,
  -- The newest tries: [{"at", "status", "error", "ms"}].
  tries      jsonb       not null default '[]',
  created_at timestamptz not null default clock_timestamp()
);

-- What is to be sent now, and of one address.
create index webhook_deliveries_due on webhook_deliveries (due_at) where state = 'pending';
create index webhook_deliveries_due_of on webhook_deliveries (webhook, due_at) where state = 'pending';
-- The log of an address, newest first.
create index webhook_deliveries_of on webhook_deliveries (webhook, created_at desc, id desc);
-- Forgets after 30 days.
create index webhook_deliveries_by_age on webhook_deliveries (created_at);

-- Events are written down by triggers and not by whoever changes a row: there are many ways for an
-- operation to end and for a key to be revoked, and none of them can forget to tell.
create function webhooks_listen(whose uuid, what text) returns boolean language sql stable as $$
  select exists (select from webhooks
                 where account = whose and disabled_at is null and what = any (events))
$$;

create function tell_webhooks(whose uuid, what text, facts jsonb) returns void language plpgsql as $$
begin
  insert into webhook_deliveries (webhook, event, data)
  select id, what, facts from webhooks
  where account = whose and disabled_at is null and what = any (events);
  if found then perform pg_notify('webhooks_due', ''); end if;
end $$;

-- What a member does in a private vault is not the account's to know.
create function is_members_vault(which uuid) returns boolean language sql stable as $$
  select exists (select from memory_keys where vault = which and kind <> 'vault')
$$;

create function tell_operation_finished() returns trigger language plpgsql as $$
begin
  if webhooks_listen(new.account, 'operation.finished') and not is_members_vault(new.vault) then
    perform tell_webhooks(new.account, 'operation.finished', jsonb_build_object(
      'operation_id', new.id, 'kind', new.kind, 'state', new.state, 'session_id', new.session,
      'key', coalesce((select masked from memory_keys where hash = new.key_hash), ''),
      'created_at', floor(extract(epoch from new.created_at) * 1000),
      'finished_at', floor(extract(epoch from coalesce(new.finished_at, now())) * 1000)));
  end if;
  return null;
end $$;

create trigger operation_finished after update of state on operations for each row
  when (new.state is distinct from old.state and new.state in ('done', 'failed', 'cancelled'))
  execute function tell_operation_finished();

create function tell_reflection_suggested() returns trigger language plpgsql as $$
begin
  if webhooks_listen(new.account, 'reflection.suggested') and not is_members_vault(new.id) then
    perform tell_webhooks(new.account, 'reflection.suggested', jsonb_build_object(
      'key', coalesce((select masked from memory_keys where vault = new.id and revoked_at is null
                       order by created_at desc limit 1), ''),
      'tier', case when new.raw_tokens >= 50000 and old.raw_tokens < 50000 then 1 else 2 end,
      'raw_units', new.raw_units, 'raw_tokens', new.raw_tokens,
      'tier2_count', new.tier2_count, 'tier2_importance', new.tier2_importance));
  end if;
  return null;
end $$;

-- 50,000 raw tokens are an importance of 150: see shared/vault/consolidate/debt.ts.
create trigger reflection_suggested after update of raw_tokens, tier2_importance on vaults for each row
  when (new.raw_tokens >= 50000 and old.raw_tokens < 50000
        or new.tier2_importance >= 150 and old.tier2_importance < 150)
  execute function tell_reflection_suggested();

create function tell_review_waiting() returns trigger language plpgsql as $$
declare owner uuid := (select account from orgs where id = new.org);
begin
  if webhooks_listen(owner, 'review.waiting') then
    perform tell_webhooks(owner, 'review.waiting', jsonb_build_object(
      'org_id', new.org, 'mem_id', new.memory, 'confidence', (new.after ->> 'confidence')::float8,
      'tags', new.after -> 'tags'));
  end if;
  return null;
end $$;

-- Not reviewed and less sure than 0.6, and it was not so before: see shared/org/review-shared-memory.ts.
create trigger review_waiting after update of state on shared_writes for each row
  when (new.state = 'done' and old.state = 'pending' and jsonb_typeof(new.after) = 'object'
        and new.after -> 'reviewed' = 'false' and (new.after ->> 'confidence')::float8 < 0.6
        and (new.before -> 'reviewed' = 'false'
             and (new.before ->> 'confidence')::float8 < 0.6) is not true)
  execute function tell_review_waiting();

create function tell_key_revoked() returns trigger language plpgsql as $$
begin
  if webhooks_listen(old.account, 'key.revoked') then
    perform tell_webhooks(old.account, 'key.revoked', jsonb_build_object(
      'key', old.masked, 'name', old.name, 'kind', old.kind, 'key_id', old.id, 'org_id', old.org));
  end if;
  return null;
end $$;

create trigger key_revoked after update of revoked_at, expires_at on memory_keys for each row
  when (old.revoked_at is null and (old.expires_at is null or old.expires_at > now())
        and (new.revoked_at is not null or new.expires_at <= now()))
  execute function tell_key_revoked();

create trigger key_deleted after delete on memory_keys for each row
  when (old.revoked_at is null and (old.expires_at is null or old.expires_at > now()))
  execute function tell_key_revoked();
