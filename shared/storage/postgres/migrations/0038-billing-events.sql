-- An event may record a value before and after it, as the compact JSON of [before, after]. It is part of
-- the hash, last; events without it are hashed as before.
alter table account_events add column change text;

create or replace function chain_account_event() returns trigger language plpgsql as $$
declare head account_event_heads;
begin
  insert into account_event_heads (account, position, hash) values (new.account, 0, '')
    on conflict do nothing;
  -- Other transactions that add an event to this account wait here.
  select * into head from account_event_heads where account = new.account for update;
  new.created_at := clock_timestamp();
  new.position := head.position + 1;
  new.hash := sha256(head.hash || convert_to(concat_ws(E'\n',
    new.position, new.account, new.id, new.action, new.subject,
    floor(extract(epoch from new.created_at) * 1000000)::bigint, new.actor, new.change), 'UTF8'));
  update account_event_heads set position = new.position, hash = new.hash
    where account = new.account;
  return new;
end $$;
