-- Fields that a model call gives to what it stores.
alter table open_exchanges add column metadata jsonb;
