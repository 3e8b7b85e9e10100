-- What calls of models for the same turn of a user share: the steps of a loop over tools, and a call that
-- is sent again because it was not answered. Both are small, and go within the hour.

-- Which memories a model was told of when a turn began, so that all steps of it get the same block. Only
-- ids: what the memories say is read when it is written again. After a crash of the database a loop under
-- way is told anew.
create unlogged table recalled_turns (
  vault    uuid        not null,
  -- SHA-256 of the session, the space and the conversation up to and including the turn.
  turn     bytea       not null,
  -- Null when memory could not be asked: then the whole turn goes on without.
  memories uuid[],
  -- From when ages of memories are told, in epoch milliseconds.
  at       bigint      not null,
  -- How many parts of the message stand before the block.
  place    integer     not null,
  kept_at  timestamptz not null default now(),
  primary key (vault, turn)
);

-- Turns whose last call was not answered: what the user said is stored, or will be. Sent again within
-- minutes, they are not stored a second time.
create unlogged table unanswered_turns (
  vault         uuid        not null,
  turn          bytea       not null,
  -- Of what was said; a later one has it no more.
  epoch         integer     not null,
  session_epoch integer     not null,
  ended_at      timestamptz not null default now(),
  primary key (vault, turn)
);

-- The turn of a call under way, when what the user said is new in it.
alter table open_exchanges add column turn bytea;
create index open_exchanges_by_turn on open_exchanges (vault, turn) where turn is not null;
