-- Account events and webhook messages are written by the code that causes them, in the same transaction
-- and with the actor as an argument: see shared/events/account-events.postgres.ts and
-- shared/events/webhooks/emit.ts; messages about ended operations by the statement that ends them: see
-- shared/operations/finished-deliveries.postgres.ts. Triggers remain for what must hold whatever
-- statement writes: the hash chains (chain_account_event, chain_audit_event), and that rows are only ever
-- added (account_events_stay).
--
-- Release order: stop all processes of the release before, or accept that what they change between this
-- migration and their end leaves no account event and no webhook message, and that their exports fail.
-- Chains stay whole either way.
drop trigger key_minted_event on memory_keys;
drop trigger key_revoked_event on memory_keys;
drop trigger key_deleted_event on memory_keys;
drop trigger admin_key_issued_event on admin_keys;
drop trigger admin_key_revoked_event on admin_keys;
drop trigger provider_key_stored_event on provider_keys;
drop trigger provider_key_deleted_event on provider_keys;
drop trigger account_policy_event on accounts;
drop trigger account_retention_event on accounts;
drop trigger org_policy_event on orgs;
drop trigger org_event on orgs;
drop trigger webhook_event on webhooks;
drop trigger webhook_changed_event on webhooks;
drop trigger vault_cleared_event on operations;

drop function note_key_event();
drop function note_admin_key_event();
drop function note_provider_key_event();
drop function note_policy_event();
drop function note_retention_event();
drop function note_org_event();
drop function note_webhook_event();
drop function note_clearing_event();
drop function note_account_event(uuid, text, text, text);

drop trigger key_revoked on memory_keys;
drop trigger key_deleted on memory_keys;
drop trigger review_waiting on shared_writes;

drop function tell_key_revoked();
drop function tell_review_waiting();

drop trigger operation_finished on operations;
drop function tell_operation_finished();

drop trigger reflection_suggested on vaults;
drop function tell_reflection_suggested();
drop function tell_webhooks(uuid, text, jsonb);
drop function webhooks_listen(uuid, text);
drop function is_members_vault(uuid);
