-- Memories on their way from one vault to another: what was asked, until the operation has ended.
create table copies (
  operation         uuid        primary key references operations (id) on delete cascade,

  -- The source as it was when its memories were chosen, and the key as answers show it.
  source            uuid        not null,
  source_epoch      integer     not null,
  source_key        text        not null,

  -- Checked again with every chunk: a cleared vault or an ended key gets nothing more.
  destination       uuid        not null,
  destination_epoch integer     not null,
  destination_hash  bytea       not null,
  destination_key   text        not null,

  -- The embedding model whose vector space is copied.
  model             text        not null,
  -- Of a graft.
  queries           json,
  threshold         double precision,
  asked_at          timestamptz not null default now()
);

-- What one job copies, oldest memories first, and then what became of them.
create table copy_chunks (
  operation uuid     not null references copies (operation) on delete cascade,
  n         integer  not null,
  -- Position of its first memory in the whole copy: new ids keep the order.
  first     integer  not null,
  ids       uuid[]   not null,
  settled   boolean  not null default false,
  copied    integer  not null default 0,
  skipped   integer  not null default 0,
  failed    integer  not null default 0,
  tokens    bigint   not null default 0,
  -- Why it failed, in words and as an HTTP status.
  error     text,
  status    smallint,
  primary key (operation, n)
);
