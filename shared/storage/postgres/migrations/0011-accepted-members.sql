-- When the person of a member has first opened the vault that the organization made; null: they are asked.
alter table org_users add column accepted_at timestamptz;
