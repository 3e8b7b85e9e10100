import type { AccountPolicy } from '#shared/accounts/policy.ts'
import type { EffectivePolicy } from '#shared/privacy/redaction-decision.ts'

export const presentPolicy = ({ redaction, decidedBy }: EffectivePolicy) => ({
  redaction,
  decided_by: decidedBy,
})

export const presentAccountPolicy = ({
  retentionDays,
  createUsers,
  traces,
  storage,
  ...policy
}: AccountPolicy) => ({
  ...presentPolicy(policy),
  retention_days: retentionDays,
  create_users: createUsers,
  traces: traces.mode,
  trace_days: traces.days,
  verbatim: storage.verbatim,
  store_response: storage.responseWithInput ? ('with_input' as const) : ('always' as const),
})
