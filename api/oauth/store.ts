import { createHmac } from 'node:crypto'
import type { Adapter, AdapterPayload } from 'oidc-provider'
import {
  consumeOAuthRecord,
  deleteOAuthRecord,
  deleteOAuthRecordsOfGrant,
  findOAuthRecord,
  upsertOAuthRecord,
} from '#shared/access/oauth-records.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import type { Backend } from '#shared/backend.ts'

export type StoreBackend = Pick<Backend, 'postgres' | 'seal' | 'config'>

/** A client that no application uses is forgotten after a month: programs keep the id that they were given. */
const unusedClientSeconds = 30 * 86_400

/** The id of a record: an HMAC, so that a stolen table holds no token. */
export const oauthRecordId = (
  { keyPepper }: Pick<Backend['config'], 'keyPepper'>,
  model: string,
  id: string,
): Buffer => createHmac('sha256', keyPepper).update(`oauth ${model} ${id}`).digest()

const placeOf = (model: string, id: Buffer): string =>
  `oauth_records ${model} ${id.toString('base64url')}`

/** The payload of a record, with the id that is not stored in it. */
export const openOAuthPayload = (
  { seal }: Pick<Backend, 'seal'>,
  { model, id, sealed }: { model: string; id: Buffer; sealed: string },
): AdapterPayload => JSON.parse(seal.open(sealed, placeOf(model, id))) as AdapterPayload

/**
 * Where oidc-provider keeps one kind of its records. Sessions are not kept: each authorization asks the person.
 *
 * @param alreadyUsed the error for a code or token that another request has used meanwhile
 */
export function createOAuthStore(
  backend: StoreBackend,
  model: string,
  alreadyUsed: () => Error,
): Adapter {
  const { query } = backend.postgres
  const idOf = (id: string) => oauthRecordId(backend.config, model, id)
  const store: Adapter = {
    async upsert(id, { accountId, grantId, ...payload }, expiresIn = unusedClientSeconds) {
      if (model === 'Session') return
      const hash = idOf(id)
      const stored = { ...payload, accountId, grantId, jti: undefined }
      const isStored = await upsertOAuthRecord(query, {
        model,
        id: hash,
        payload: backend.seal.seal(JSON.stringify(stored), placeOf(model, hash)),
        seconds: expiresIn,
        application: accountId !== undefined && isUuid(accountId) ? accountId : null,
        grantId: grantId === undefined ? null : oauthRecordId(backend.config, 'Grant', grantId),
      })
      // A replay of the code, or the person, has ended the application meanwhile.
      if (!isStored) throw alreadyUsed()
    },
    async find(id) {
      const hash = idOf(id)
      const record = await findOAuthRecord(query, { model, id: hash })
      if (!record) return undefined
      const payload = openOAuthPayload(backend, { model, id: hash, sealed: record.payload })
      const isClient = model === 'Client'
      return {
        ...payload,
        ...(!isClient && { jti: id }),
        ...(record.consumedAt && { consumed: Math.floor(record.consumedAt.getTime() / 1_000) }),
      }
    },
    async consume(id) {
      if (!(await consumeOAuthRecord(query, { model, id: idOf(id) }))) throw alreadyUsed()
    },
    async destroy(id) {
      await deleteOAuthRecord(query, { model, id: idOf(id) })
    },
    revokeByGrantId: grantId =>
      deleteOAuthRecordsOfGrant(query, model, oauthRecordId(backend.config, 'Grant', grantId)),
    // There are no device codes and no sessions.
    findByUserCode: async () => undefined,
    findByUid: async () => undefined,
  }
  return Object.fromEntries(
    Object.entries(store).map(([name, run]) => [name, answeringAway(run as Run)]),
  ) as unknown as Adapter
}

type Run = (...args: unknown[]) => Promise<unknown>

/** The provider answers with the status of an error: 503 while the database is away. */
const answeringAway =
  (run: Run): Run =>
  async (...args) => {
    try {
      return await run(...args)
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'unavailable')
        throw Object.assign(error, { statusCode: 503 })
      throw error
    }
  }
