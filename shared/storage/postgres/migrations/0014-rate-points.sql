-- What keys and addresses have used of their limits. Lost with a crash of the database, and no loss: a
-- window lasts a minute at most.
create unlogged table rate_points (
  -- The window's name and a hash, of a key or of an address.
  key    text    primary key,
  -- Used by all processes, or lent to one of them.
  points integer not null default 0,
  -- When the window ends, in epoch milliseconds.
  expire bigint
  -- Room on each page for the next version of a row: no index changes, so the update stays on its page.
) with (fillfactor = 70);
