-- Reads the statements of an organization page by page.
create index shared_statements_of_org on shared_statements (org, id)
  where removed_at is null and withdrawn_at is null;
