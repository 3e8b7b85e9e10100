-- How far each webhook that takes the audit has been told a chain: that of its account, or of an organization of it.
create table audit_cursors (
  webhook  uuid   not null references webhooks (id) on delete cascade,
  chain    uuid   not null,
  position bigint not null,
  primary key (webhook, chain)
);
