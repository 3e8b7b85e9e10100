-- The key whose rate limits this one shares: the key of a user that minted it, or that it replaced, and so on
-- to the first. Null: limits of its own.
alter table memory_keys
  add column limited_as bytea check (octet_length(limited_as) = 32);
