-- Whether files that bring memories are kept themselves.
alter table accounts add column keep_files boolean not null default false;

-- Files as they came, in parts, where the policy keeps them; and pictures that a model is to describe, until their upload
-- has ended. In Postgres: the transactions that accept and end an upload keep its file, the one that clears a vault deletes it.
create table kept_files (
  id             uuid    not null,
  n              integer not null,
  vault          uuid    not null references vaults (id) on delete cascade,
  -- '' is the core vault.
  session        text    not null,
  file_id        text    not null,
  name           text    not null,
  -- The upload that is accepted to keep it.
  operation      uuid,
  -- Until all of the upload is stored: what gives that up deletes this, and nobody is given it.
  long_operation uuid    references long_operations (id) on delete cascade,
  bytes          bytea   not null,
  primary key (id, n)
);
-- Documents and pictures are packed already.
alter table kept_files alter column bytes set storage external;
create index kept_files_of_vault on kept_files (vault, file_id);
create index kept_files_of_upload on kept_files (long_operation) where long_operation is not null;

-- By triggers, so that processes of the version before clear files, too.
create function delete_kept_files() returns trigger language plpgsql as $$
begin
  delete from kept_files
  where vault = (to_jsonb(new)->>tg_argv[0])::uuid and operation is not null
    and (tg_argv[0] = 'id' or session = to_jsonb(new)->>'session');
  return null;
end $$;
create trigger delete_kept_files after insert on vault_changes
  for each row when (new.cleared) execute function delete_kept_files('vault');
create trigger delete_kept_files after update of epoch on vaults
  for each row when (old.epoch <> new.epoch) execute function delete_kept_files('id');
