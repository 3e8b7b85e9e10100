-- Which turn changes the memory of an organization, and until when without a word of its process.
alter table org_pipelines
  add column lane_turn  uuid,
  add column lane_until timestamptz;
