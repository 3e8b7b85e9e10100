-- Times of an event read like those of every answer.
create or replace function tell_operation_finished() returns trigger language plpgsql as $$
declare iso constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
begin
  if webhooks_listen(new.account, 'operation.finished') and not is_members_vault(new.vault) then
    perform tell_webhooks(new.account, 'operation.finished', jsonb_build_object(
      'operation_id', new.id, 'kind', new.kind, 'state', new.state, 'session_id', new.session,
      'key', coalesce((select masked from memory_keys where hash = new.key_hash), ''),
      'created_at', to_char(new.created_at at time zone 'UTC', iso),
      'finished_at', to_char(coalesce(new.finished_at, now()) at time zone 'UTC', iso)));
  end if;
  return null;
end $$;
