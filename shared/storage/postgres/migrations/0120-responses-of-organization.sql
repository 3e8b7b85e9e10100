-- Finds the responses stored for requests about an organization, whatever credential sent them, when words of it
-- are removed for good.
create index idempotency_of_organization on idempotency (split_part(route, '/', 4))
  where route like '% /v1/orgs/%/%';
