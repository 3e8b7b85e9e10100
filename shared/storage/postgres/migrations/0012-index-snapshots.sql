-- Vault indexes as they were in memory at a revision, in parts: what is cheaper to read than to make again from the
-- documents. Unlogged: after a crash of the server there are none.
create unlogged table index_snapshots (
  vault    uuid        not null,
  -- '' is the core vault.
  session  text        not null,
  space    text        not null,
  part     integer     not null,
  epoch    integer     not null,
  revision bigint      not null,
  -- Of the code and data that words and vectors are made by.
  code     text        not null,
  rows     integer     not null,
  -- Bytes of all parts.
  size     integer     not null,
  -- CRC-32 of this part.
  checksum bigint      not null,
  bytes    bytea       not null,
  saved_at timestamptz not null default now(),
  primary key (vault, session, space, part)
);
-- Vectors do not compress.
alter table index_snapshots alter column bytes set storage external;

-- What is saved of a vault holds the texts of its memories: it goes in the transaction that removes or changes one, or
-- clears the vault. By triggers, so that processes of the version before do so too.
create function delete_index_snapshots() returns trigger language plpgsql as $$
begin
  delete from index_snapshots where vault = (to_jsonb(new)->>tg_argv[0])::uuid;
  return null;
end $$;
create trigger delete_index_snapshots after insert on vault_changes
  for each row when (new.cleared or new.removed <> '{}') execute function delete_index_snapshots('vault');
create trigger delete_index_snapshots after update of epoch on vaults
  for each row when (old.epoch <> new.epoch) execute function delete_index_snapshots('id');
