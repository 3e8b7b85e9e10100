-- False: the exchange is stored for its member alone, and not told to the organization.
alter table open_exchanges add column shares boolean not null default true;
