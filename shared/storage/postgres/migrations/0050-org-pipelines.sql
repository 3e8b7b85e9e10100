-- The state of an organization's pipeline: what its admin has set, and a fault that it waits out. No row
-- is one that runs without a limit.
create table org_pipelines (
  org                uuid        primary key references orgs (id) on delete cascade,
  paused             boolean     not null default false,
  -- Tokens of models, in and out, on one UTC day.
  daily_token_budget bigint,
  -- Why its provider could not be used; null while it can.
  fault              text,
  fault_since        timestamptz,
  -- Failed probes in a row, and when the next one is due.
  probes             integer     not null default 0,
  probe_at           timestamptz
);

-- What the models of an organization were asked, per UTC day, pass, member and model.
create table org_usage (
  org           uuid    not null references orgs (id) on delete cascade,
  day           date    not null,
  pass          text    not null,
  member        text    not null,
  model         text    not null,
  calls         integer not null,
  input_tokens  bigint  not null,
  output_tokens bigint  not null,
  primary key (org, day, pass, member, model)
);
