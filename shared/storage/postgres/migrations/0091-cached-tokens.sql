-- Of the input tokens of a team's pipeline, those that the provider's cache held. Not known of earlier days.
alter table org_usage add column cached_tokens bigint not null default 0;
