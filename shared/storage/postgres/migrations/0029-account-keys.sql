-- Keys of accounts are listed and revoked, so they have ids too.
update memory_keys set id = gen_random_uuid() where id is null;
alter table memory_keys
  alter column id set default gen_random_uuid(),
  alter column id set not null,
  -- Since when another key has its vault: it may still be used for a time of grace, and no longer
  -- mints or ends keys.
  add column rotated_at timestamptz;

update memory_keys k set rotated_at = next.created_at
from (select hash, lead(created_at) over (partition by vault order by created_at) as created_at
      from memory_keys where kind = 'vault') next
where next.hash = k.hash and next.created_at is not null;

-- Those of an account, newest first.
create index memory_keys_listed on memory_keys (account, created_at desc, id desc)
  where kind = 'vault';
