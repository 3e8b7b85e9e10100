-- The id by which a product names the user of a vault. It goes when the vault is erased.
alter table vaults add column external_id text check (length(external_id) between 1 and 256);
create unique index vaults_of_users on vaults (account, external_id) where external_id is not null;

-- Whether X-Memory-User with an unknown id makes the user.
alter table accounts add column create_users boolean not null default true;

-- Events name keys in their masked form.
create index memory_keys_masked on memory_keys (account, masked) where kind = 'vault';
