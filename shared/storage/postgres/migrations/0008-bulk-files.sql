-- A file of lines on its way into a vault. Its chunks are staged while it arrives; accepting it makes
-- them the work of an operation. It goes, with them, when the operation ends.
create table bulk_files (
  id             uuid        primary key,
  vault          uuid        not null references vaults (id) on delete cascade,
  kind           text        not null check (kind in ('upload', 'import')),
  -- Null while it arrives: nothing of it has happened yet.
  operation      uuid        unique references operations (id) on delete cascade,
  -- SHA-256 of what was asked: the same file sent again joins the work that is under way.
  asked_hash     bytea,
  -- Where an upload goes; the lines of an import say it themselves.
  session        text,
  model          text        not null,
  -- Of an import: what becomes of a memory the vault has already.
  replaces       boolean     not null default false,
  lines          integer     not null default 0,
  -- Read when it was accepted; a later epoch makes the work void. Sessions not named are at epoch 0.
  epoch          integer,
  session_epochs jsonb       not null default '{}',
  created_at     timestamptz not null default now()
);

-- Finds the same file under way, and everything of a vault that is to be erased.
create index bulk_files_of_vault on bulk_files (vault);
-- Finds what a process that died had begun to stage.
create index bulk_files_staged on bulk_files (created_at) where operation is null;

-- Some lines of a file: what one job stores, and then what became of them.
create table bulk_chunks (
  file     uuid     not null references bulk_files (id) on delete cascade,
  n        integer  not null,
  -- Imports go tier by tier, so that what a reflection covers is there before it.
  tier     smallint not null,
  lines    integer  not null,
  -- The faulty lines: how many, and the first of them.
  failed   integer  not null,
  errors   json     not null,
  -- The sessions its lines name.
  sessions text[]   not null,
  -- The good lines; null once they are stored.
  content  json,
  -- Which memory each becomes under which id; settled before the first is written, so that a second
  -- run neither doubles nor brings back what was deleted in between.
  plan     json,
  settled  boolean  not null default false,
  memories integer  not null default 0,
  stored   integer  not null default 0,
  replaced integer  not null default 0,
  skipped  integer  not null default 0,
  -- Of what was stored or replaced.
  tokens   integer  not null default 0,
  primary key (file, n)
);
