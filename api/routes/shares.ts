import type { Router } from '@koa/router'
import { findSharing } from '#shared/org/memories/shared-statements.postgres.ts'
import type { Sharing, SharedStatement } from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey, withLookup } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { requireRetrievePermission, requireStorePermission } from '#shared/access/caller.ts'
import {
  changeSharing,
  listStatements,
  requireMember,
  type ListedStatement,
} from '#shared/org/memories/shared-statements.ts'
import type { SharingPolicy } from '#shared/org/memories/shared-statements.postgres.ts'
import { withdrawStatement } from '#shared/org/memories/withdraw-statement.ts'

const memberReading = withLookup(memoryKey(requireRetrievePermission), ({ caller }) => ({
  member: requireMember(caller),
}))

const memberWriting = withLookup(memoryKey(requireStorePermission), ({ caller }) => ({
  member: requireMember(caller),
}))

/** A member's statements in the team's memory: listed, withdrawn, and whether more are shared. */
export function shares(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/shares',
    auth: memberReading,
    async handle({ caller, member, query }, ctx) {
      const page = await listStatements(backend, member, query)
      const sharing = await findSharing(backend.postgres.query, caller.keyHash)
      ctx.body = {
        ...presentSharing(sharing),
        private_key_at: sharing.privateKeyAt?.getTime() ?? null,
        ...presentPage(page, presentStatement),
      }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/shares',
    auth: memberWriting,
    current: async ({ caller }) =>
      presentSharing(await findSharing(backend.postgres.query, caller.keyHash)),
    async handle({ caller, member, body }, ctx) {
      ctx.body = presentSharing(await changeSharing(backend, caller, member, body.shares))
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/shares/:statementId',
    auth: memberWriting,
    async handle({ member, params }, ctx) {
      const id = params.statementId
      await withdrawStatement(backend, member, id)
      ctx.body = { deleted: true, id }
    },
  })
}

const presentSharing = ({ member, key }: SharingPolicy): Sharing => ({
  shares: member,
  key_shares: key,
})

const presentStatement = ({
  id,
  text,
  saidAt,
  sharedMemory,
}: ListedStatement): SharedStatement => ({
  id,
  text,
  said_at: saidAt.getTime(),
  visible: sharedMemory !== null,
  mem_id: sharedMemory?.id ?? null,
  tags: sharedMemory && [...sharedMemory.tags],
  current: sharedMemory?.text ?? null,
  author: sharedMemory?.author ?? null,
})
