-- What is decided once for all processes of this database, by name.
create table settings (
  name   text        primary key,
  value  text        not null,
  set_at timestamptz not null default now()
);

-- The embedding model whose space a vault stands in: what reads and writes that name no model go by. Null
-- only for vaults made before any process has started.
alter table vaults
  add column embeddings text,
  -- When it came to stand there, if it stood elsewhere before, and when to look next for what has been
  -- stored in the space it left since.
  add column moved_at timestamptz,
  add column look_at  timestamptz;

-- Finds the vaults to look at.
create index vaults_look_at on vaults (look_at) where look_at is not null;

-- A new vault stands in the space of the model that is the default by then, whatever the process that
-- makes it was started with.
create function stand_in_default_space() returns trigger language plpgsql as $$
begin
  new.embeddings := coalesce(
    new.embeddings,
    (select value from settings where name = 'embeddings')
  );
  return new;
end $$;

create trigger stand_in_default_space before insert on vaults for each row
  execute function stand_in_default_space();
