import type { AccountPolicy } from '#shared/accounts/policy.ts'
import type { Policy } from '#shared/privacy/redaction-decision.ts'

export const presentPolicy = ({ redaction, from }: Policy) => ({ redaction, decided_by: from })

export const presentAccountPolicy = ({ retentionDays, ...policy }: AccountPolicy) => ({
  ...presentPolicy(policy),
  retention_days: retentionDays,
})
