-- What is known of the request that a turn was last sent with, so that a later one can say whether a provider's
-- cache still fits. The digest is of the block, which is rebuilt from memories: one that was reworded gives
-- other bytes. A partial request was sent without a block that one before it had.
alter table recalled_turns
  add column digest bytea,
  add column is_partial boolean not null default false;
