-- A vault and an account are deleted 400 days after their erasure. usage_events is never trimmed, and each check of
-- these references would read all of it: nothing has an index by vault or account, which each counted request would
-- have to write. What is left of an account's usage is deleted before.
alter table usage_events
  drop constraint usage_events_vault_fkey,
  drop constraint usage_events_account_fkey;

-- Deletes the batches of a vault with it.
create index leases_of_vault on leases (vault);
