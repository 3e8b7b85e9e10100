-- When an admin credential was last used: to the minute.
alter table admin_keys add column last_used_at timestamptz;
