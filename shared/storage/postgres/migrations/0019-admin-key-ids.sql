-- Admin credentials are listed and revoked by an id of their own.
alter table admin_keys add column id uuid not null default gen_random_uuid();
create unique index admin_keys_by_id on admin_keys (id);
