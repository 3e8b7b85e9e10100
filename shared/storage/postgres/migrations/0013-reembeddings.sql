-- Vaults on their way into another vector space, a step at a time, until the operation has ended.
create table reembeddings (
  operation     uuid    primary key references operations (id) on delete cascade,
  vault         uuid    not null,
  epoch         integer not null,
  -- The embedding model they are on their way to.
  model         text    not null,
  drop_previous boolean not null,

  -- The step to do next: embed these memories, or drop their other vectors. It is written down before
  -- anything is done, so that whoever does it again announces the same memories.
  step          integer not null default 0,
  dropping      boolean not null default false,
  places        json    not null default '[]',
  -- Where the next look for memories begins.
  after         json,

  embedded      integer not null default 0,
  dropped       integer not null default 0
);
