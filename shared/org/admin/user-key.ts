import type { Admin } from '#shared/access/admin.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { insertMemberKey, revokeUserKeys } from '#shared/access/member-keys.postgres.ts'
import { recordRevokedKeys, toKeyRevokedEvents } from '#shared/access/revoked-key.ts'
import type { Config } from '#shared/core/config.ts'
import { mintId } from '#shared/core/ids.ts'
import { emitWebhookEvents } from '#shared/events/webhooks/emit.ts'
import { changePolicy } from '#shared/org/base/policy-change.ts'
import { recordPolicyEvent } from '#shared/org/base/policy-events.ts'
import { requireUser } from '#shared/org/admin/user.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type OrgAdmin = { admin: Admin; org: string }

/**
 * Mints a standard key for a user's private vault, in place of the one before. Its memories stay.
 *
 * @returns the raw key, which is not stored
 * @throws Refusal `missing`.
 */
export const mintUserKey = (
  backend: { postgres: Postgres; config: Config; queue: Queue },
  { admin, org }: OrgAdmin,
  id: string,
): Promise<{ key: string; rotated: boolean; createdAt: Date }> =>
  changePolicy(backend, { admin, org }, async tx => {
    const user = await requireUser(tx.query, org, id)
    const { account, email: actor } = admin
    const revoked = await revokeUserKeys(tx, user.id)
    await recordRevokedKeys(tx, revoked, actor)
    await emitWebhookEvents(tx, backend.queue, toKeyRevokedEvents(revoked))
    const key = mintKey('vault')
    const createdAt = await insertMemberKey(tx, {
      id: mintId(),
      hash: hashKey(backend.config.keyPepper, key),
      org,
      user: user.id,
      account,
      vault: user.vault,
      kind: 'user',
      name: user.teamMemberId,
      masked: maskKey(key),
      sealed: null,
    })
    const rotated = revoked.length > 0
    await recordPolicyEvent(
      tx,
      { admin, org },
      {
        action: rotated ? 'key.rotated' : 'key.minted',
        subject: maskKey(key),
        before: null,
        after: { user_id: user.id, team_member_id: user.teamMemberId },
      },
    )
    return { key, rotated, createdAt }
  })
