-- Whether a session id names the conversation alone, and what is said lives in the core of the vault.

alter table accounts add column core_sessions boolean not null default false;
