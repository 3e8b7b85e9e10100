-- Budgets of model calls in millionths of a dollar, by list prices, in 30 days.
alter table memory_keys add column monthly_micros bigint check (monthly_micros > 0);
alter table accounts add column user_monthly_micros bigint check (user_monthly_micros > 0);

-- The end of the window of which its owner was told that 80 %, or all of it, is used.
alter table budget_points add column warned_until bigint, add column used_up_until bigint;
