-- What was done to an account: to its keys, its policy, its webhooks, by whom. Never what is remembered
-- there, and no secret. Rows are only ever added; they go when the account is erased.
create table account_events (
  id         uuid        primary key default gen_random_uuid(),
  account    uuid        not null references accounts (id) on delete cascade,
  action     text        not null,
  -- What it was done to: a key or credential, masked; the id of a webhook or organization; a provider.
  subject    text        not null,
  -- The email of an admin, a Memory Key, masked, or `service`.
  actor      text        not null,
  created_at timestamptz not null default now(),
  -- From 1, without a gap, within the account.
  position   bigint      not null,
  -- Over this event and the one before: see shared/events/account-event-chain.ts, which counts the same.
  hash       bytea       not null
);

-- The newest of an account, and its chain from the beginning.
create unique index account_events_chain on account_events (account, position);

create table account_event_heads (
  account  uuid   primary key references accounts (id) on delete cascade,
  -- How many events there are, and the hash of the last.
  position bigint not null,
  hash     bytea  not null
);

create function chain_account_event() returns trigger language plpgsql as $$
declare head account_event_heads;
begin
  insert into account_event_heads (account, position, hash) values (new.account, 0, '')
    on conflict do nothing;
  -- Whoever else adds an event to this account waits here.
  select * into head from account_event_heads where account = new.account for update;
  new.created_at := clock_timestamp();
  new.position := head.position + 1;
  new.hash := sha256(head.hash || convert_to(concat_ws(E'\n',
    new.position, new.account, new.id, new.action, new.subject,
    floor(extract(epoch from new.created_at) * 1000000)::bigint, new.actor), 'UTF8'));
  update account_event_heads set position = new.position, hash = new.hash
    where account = new.account;
  return new;
end $$;

create trigger chain_account_event before insert on account_events for each row
  execute function chain_account_event();

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of % are only ever added', tg_table_name;
end $$;

create trigger account_events_stay before update on account_events for each row
  execute function refuse_change();

-- Events are written down by triggers and not by whoever changes a row: there are many ways for a key to
-- come and go, and none of them can forget. Who does it is a setting of the transaction: see
-- shared/audit/actor.postgres.ts.
create function note_account_event(whose uuid, what text, which text, who text default null)
returns void language sql as $$
  -- An account that is being deleted is there no more. It is held before the chain is, in the order that
  -- its erasure takes both.
  insert into account_events (account, action, subject, actor)
  select id, what, which,
         coalesce(nullif(current_setting('vault.actor', true), ''), who, 'service')
  from accounts where id = whose for key share
$$;

create function note_key_event() returns trigger language plpgsql as $$
declare
  -- A further key for a vault of the account itself takes the place of the one before.
  rotated boolean := tg_op = 'INSERT' and new.kind = 'vault' and exists (
    select from memory_keys where vault = new.vault and hash <> new.hash);
begin
  if tg_op = 'INSERT' then
    perform note_account_event(new.account, case when rotated then 'key.rotated' else 'key.minted' end,
                               new.masked);
  else
    perform note_account_event(old.account, 'key.revoked', old.masked);
  end if;
  return null;
end $$;

create trigger key_minted_event after insert on memory_keys for each row
  execute function note_key_event();
create trigger key_revoked_event after update of revoked_at, expires_at on memory_keys for each row
  when (old.revoked_at is null and (old.expires_at is null or old.expires_at > now())
        and (new.revoked_at is not null
             or new.expires_at is not null and new.expires_at is distinct from old.expires_at))
  execute function note_key_event();
create trigger key_deleted_event after delete on memory_keys for each row
  when (old.revoked_at is null and (old.expires_at is null or old.expires_at > now()))
  execute function note_key_event();

create function note_admin_key_event() returns trigger language plpgsql as $$
begin
  perform note_account_event((select id from accounts where email = new.email),
    case when tg_op = 'INSERT' then 'admin_key.issued' else 'admin_key.revoked' end, new.masked);
  return null;
end $$;

create trigger admin_key_issued_event after insert on admin_keys for each row
  execute function note_admin_key_event();
create trigger admin_key_revoked_event after update of revoked_at on admin_keys for each row
  when (old.revoked_at is null and new.revoked_at is not null)
  execute function note_admin_key_event();

create function note_provider_key_event() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform note_account_event(old.account, 'provider_key.deleted', old.provider);
  else
    perform note_account_event(new.account, 'provider_key.stored', new.provider);
  end if;
  return null;
end $$;

create trigger provider_key_stored_event after insert or update of sealed on provider_keys
  for each row execute function note_provider_key_event();
create trigger provider_key_deleted_event after delete on provider_keys for each row
  execute function note_provider_key_event();

create function note_policy_event() returns trigger language plpgsql as $$
begin
  if tg_table_name = 'orgs' then
    perform note_account_event(new.account, 'policy.changed', new.id::text);
  else
    perform note_account_event(new.id, 'policy.changed', 'account');
  end if;
  return null;
end $$;

create trigger account_policy_event after update of redaction on accounts for each row
  when (new.redaction is distinct from old.redaction)
  execute function note_policy_event();
create trigger org_policy_event after update of redaction on orgs for each row
  when (new.redaction is distinct from old.redaction)
  execute function note_policy_event();

create function note_org_event() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    perform note_account_event(new.account, 'organization.created', new.id::text);
  else
    perform note_account_event(old.account, 'organization.deleted', old.id::text);
  end if;
  return null;
end $$;

create trigger org_event after insert or delete on orgs for each row
  execute function note_org_event();

create function note_webhook_event() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform note_account_event(old.account, 'webhook.deleted', old.id::text);
  elsif tg_op = 'INSERT' then
    perform note_account_event(new.account, 'webhook.created', new.id::text);
  else
    perform note_account_event(new.account, 'webhook.changed', new.id::text);
  end if;
  return null;
end $$;

create trigger webhook_event after insert or delete on webhooks for each row
  execute function note_webhook_event();
create trigger webhook_changed_event after update on webhooks for each row
  when ((new.url, new.description, new.events, new.secret, new.disabled_at)
        is distinct from (old.url, old.description, old.events, old.secret, old.disabled_at))
  execute function note_webhook_event();

-- Of the vaults that keys of the account itself open: what a member does in a private one is not the
-- account's to know, and that of an organization goes with it.
create function note_clearing_event() returns trigger language plpgsql as $$
begin
  if exists (select from memory_keys where vault = new.vault and kind = 'vault') then
    perform note_account_event(new.account, 'vault.cleared',
      coalesce((select masked from memory_keys where hash = new.key_hash), ''),
      (select masked from memory_keys where hash = new.key_hash));
  end if;
  return null;
end $$;

create trigger vault_cleared_event after insert on operations for each row
  when (new.kind = 'clear' and new.session is null)
  execute function note_clearing_event();

-- A session has a row here once something was stored in it, so that sessions can be listed without a
-- look at what they hold; those stored to before this are found by what they were billed for. Epochs
-- begin at 0 and rise when a session is cleared.
alter table sessions
  alter column epoch set default 0,
  -- When something was stored in it or changed there; null from its clearing until the next time.
  add column stored_at timestamptz;

insert into sessions (vault, session, stored_at)
select vault, session, max(at) from (
  select vault, session, at from vault_changes where session <> '' and stored <> '{}'
  union all
  select e.vault, e.session, e.at from usage_events e join vaults v on v.id = e.vault
  where e.session <> '' and e.kind in ('ingest', 'proxy', 'upload', 'import')
) known
group by vault, session
on conflict (vault, session) do update set stored_at = excluded.stored_at;

-- The newest of a vault.
create index sessions_stored on sessions (vault, stored_at desc, session desc)
  where stored_at is not null;
