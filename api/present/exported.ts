import {
  presentInstructions,
  presentListedUser,
  presentOrg,
  presentRole,
  presentTag,
} from '#api/present/org.ts'
import { presentShared } from '#api/present/shared-memory.ts'
import { presentWebhook } from '#api/present/webhook.ts'
import type { Exported } from '#shared/account/export.ts'
import type { OwnVault } from '#shared/postgres/account-export.ts'

/** A line of the export of an account. */
export function presentExported(exported: Exported): object {
  const { type } = exported
  switch (type) {
    case 'account': {
      const { email, paymentMethod, balance, createdAt } = exported.account
      const created_at = createdAt.toISOString()
      return { type, email, payment_method: paymentMethod, balance, created_at }
    }
    case 'provider_key': {
      const { provider, masked, createdAt } = exported.key
      return { type, provider, masked_key: masked, created_at: createdAt.toISOString() }
    }
    case 'webhook':
      return { type, ...presentWebhook(exported.webhook) }
    case 'vault':
      return { type, vault: exported.number, ...presentVault(exported.vault) }
    case 'memory':
      return { type, vault: exported.number, ...exported.memory }
    case 'organization': {
      const { org, instructions, roles, tags, users } = exported
      return {
        type,
        ...presentOrg(org),
        instructions: presentInstructions(instructions),
        roles: roles.map(presentRole),
        tags: tags.map(presentTag),
        users: users.map(presentListedUser),
      }
    }
    case 'shared_memory': {
      const roles = exported.roles.map(({ allowedTags }) => allowedTags)
      return { type, ...presentShared(exported.memory, { org: exported.org, roles }) }
    }
  }
}

const presentVault = ({ createdAt, keys }: OwnVault) => ({
  created_at: createdAt.toISOString(),
  keys: keys.map(({ masked, name, createdAt, expiresAt, revokedAt }) => ({
    masked_key: masked,
    name,
    created_at: isoOf(createdAt),
    expires_at: isoOf(expiresAt),
    revoked_at: isoOf(revokedAt),
  })),
})

const isoOf = (text: string | null): string | null =>
  text === null ? null : new Date(text).toISOString()
