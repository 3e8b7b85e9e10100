-- Addresses are sealed from now on (shared/events/webhooks/sealed-url.ts): their path or query may be a
-- secret. A sweep seals those that are stored in clear; this index shows it which.
create index webhooks_unsealed on webhooks (id) where left(url, 3) <> 'v1.';
