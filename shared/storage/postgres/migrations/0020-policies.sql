-- What becomes of private data in what is to be remembered:
-- {"mode": "off" | "redact" | "block", "kinds": ["secret", …]}.
alter table accounts add column redaction jsonb check (redaction ? 'mode' and redaction ? 'kinds');

-- Null: as the account does that it belongs to.
alter table orgs add column redaction jsonb check (redaction ? 'mode' and redaction ? 'kinds');
