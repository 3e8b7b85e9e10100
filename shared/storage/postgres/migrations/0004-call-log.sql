-- One call log for all ways to recall. A trace of a call that stores nothing keeps its question; a trace still
-- holds no text of a memory.

alter table call_traces
  -- How memory was read.
  add column way            text    not null default 'proxy' check (way in ('proxy', 'prepare', 'search', 'mcp')),
  -- Of the vault. Null: written by a process of 1.0 during the upgrade.
  add column account        uuid,
  -- As in the trace.
  add column status         text,
  add column model          text,
  -- Durations and tokens, which are known when the call has ended: {recall, provider, total, input, cached, output}.
  add column outcome        jsonb,
  -- Of a call that stores nothing, where the policy of the account has texts: what was asked, as it may be stored.
  add column question       text,
  -- The first 16 bytes of the SHA-256 of each memory that would be stored of the question: by these it is dropped
  -- with a memory of the same text.
  add column question_marks bytea[];

update call_traces t
set account = v.account, status = t.trace->>'status', model = t.trace->>'model'
from vaults v where v.id = t.vault;

create index call_traces_by_account on call_traces (account, id);
create index call_traces_by_question on call_traces using gin (question_marks) where question_marks is not null;
