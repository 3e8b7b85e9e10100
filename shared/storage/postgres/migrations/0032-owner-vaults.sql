-- A vault made with its account, by whoever runs the service: its keys, and what they are rotated into,
-- speak for the account. Keys minted over HTTP are for one user each and open their own vault alone.
alter table vaults add column owner boolean not null default false;

-- The first key of an account was made with it.
update vaults set owner = true
where id in (select distinct on (account) vault from memory_keys where kind = 'vault'
             order by account, created_at, hash);
