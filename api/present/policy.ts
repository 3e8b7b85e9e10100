import type { AccountPolicy, Policy } from '#shared/account/policy.ts'

export const presentPolicy = ({ redaction, from }: Policy) => ({ redaction, decided_by: from })

export const presentAccountPolicy = ({ retentionDays, ...policy }: AccountPolicy) => ({
  ...presentPolicy(policy),
  retention_days: retentionDays,
})
