-- What was measured of the embedding model of a vault space: how its cosines map to scores.
create table embedding_spaces (
  space text not null,
  -- Of the sentences that it was measured with.
  version integer not null,
  calibration jsonb not null,
  measured_at timestamptz not null default now(),
  primary key (space, version)
);
