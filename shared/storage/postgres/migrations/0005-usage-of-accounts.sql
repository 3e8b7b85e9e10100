-- The account of each sum, so that a report of an account reads one range of an index. Null where the key had gone before
-- this migration; the key of an organization's pipeline is a hash of the organization.
alter table usage_daily
  add column account       uuid,
  add column cached_tokens bigint not null default 0;
update usage_daily d set account = k.account from memory_keys k where k.hash = d.key_hash;
update usage_daily d set account = o.account from orgs o
where d.key_hash = sha256(convert_to('organization ' || o.id, 'UTF8'));
create index usage_daily_of_account on usage_daily (account, day);

-- Of the input tokens, those that a cache of the provider held. Last: every exchange writes to usage_events.
alter table usage_events   add column cached_tokens integer not null default 0;
alter table usage_accounts add column cached_tokens bigint  not null default 0;
