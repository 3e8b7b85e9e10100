import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { countUsers, insertUserVault, lockUserPolicy } from '#shared/access/accounts.postgres.ts'
import { mintKey } from '#shared/access/key.ts'
import {
  findStoredUserKey,
  type AccountUser,
  type StoredUserKey,
} from '#shared/access/key-row.postgres.ts'
import { storeKey } from '#shared/access/mint.ts'
import type { Config } from '#shared/core/config.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Seal } from '#shared/core/seal.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/** In code points, after normalization. */
const lengthMax = 256

/**
 * Texts that programs write for a missing value: all their users would share one vault. `default_user_id` is LiteLLM's
 * proxy user without a key (litellm/proxy/_types.py), `anonymous`, `unknown` and `default` stand for people that a program
 * does not know; the others are what JavaScript and Python print.
 */
const placeholders = new Set([
  '[object object]',
  ...`undefined null none nan default_user_id anonymous unknown default "" ''`.split(' '),
])

/**
 * A name in the marks of a template that was not filled in: `{{…}}` (Mustache, LibreChat), `{…}` (Python's format),
 * `${…}` and `$…` (shells, JavaScript), `<…>` (documentation), `%…%` (Windows), `%s` and `%(…)s` (printf).
 */
const templates =
  /^(?:\{\{.*\}\}|\$?\{[\w .:-]*\}|\$[A-Z_][A-Z0-9_]*|<[\w .:-]*>|%[A-Z_][A-Z0-9_]*%|%[sd]|%\(\w+\)[sd])$/i

/**
 * The id by which a product names its user, in Unicode form NFC and without white space around it: ids that
 * look the same are the same.
 *
 * @param field names it in errors
 * @throws Refusal `invalid` for an id that is empty, too long, damaged, or a placeholder of a missing one.
 */
export function parseExternalId(text: string, field: string): string {
  const id = text.normalize('NFC').trim()
  if (id === '') throw invalidId(`${field} is empty`)
  if (Array.from(id).length > lengthMax)
    throw invalidId(`${field} must have at most ${lengthMax} characters`)
  // A damaged character stands for several: two ids could become one.
  if (/[\p{Cc}\p{Zl}\p{Zp}\uFFFD]/u.test(id) || !id.isWellFormed())
    throw invalidId(`${field} must be text in UTF-8 without control characters`)
  if (placeholders.has(id.toLowerCase()))
    throw invalidId(`${field} is "${id}", which programs write for a missing value`)
  if (templates.test(id))
    throw invalidId(`${field} is "${id}", a template that the program did not fill in`)
  return id
}

const invalidId = (message: string): Refusal =>
  new Refusal(
    'invalid',
    message,
    'Send the id that your product has for the user, 1 to 256 characters',
  )

type SealBackend = { config: Pick<Config, 'keyPepper' | 'usersMax'>; seal: Seal }

export type NewUser = AccountUser & {
  /** Who creates it, as the account's events name them. */
  actor: string
  name: string
  expiresAt: Date | null
}

/** The key of a user, whole. */
export type UserKey = {
  id: string
  key: string
  name: string
  createdAt: Date
  expiresAt: Date | null
  isNew: boolean
}

/**
 * The key of a user, created with an empty vault when the account has no user of that id. One of
 * several requests at once creates it and the others get the same key. The name and the expiry of an existing key stay.
 *
 * @throws Refusal `conflict` when the key was revoked, has expired, or cannot be shown any more; `forbidden` when the
 *   account has as many users as it may.
 */
export async function ensureUserKey(
  tx: Transaction,
  backend: SealBackend,
  user: NewUser,
): Promise<UserKey> {
  await lockUserPolicy(tx, user.account)
  const created = await createUserKey(tx, backend, user)
  if (created) return created
  const found = await findStoredUserKey(tx, user)
  // Between the two statements the user was erased, or the account.
  if (!found) throw new Refusal('conflict', 'This user is being erased', 'Try again in a moment')
  if (!found.isActive) throw refusal('conflict', 'userKeyEnded', { id: found.id })
  const key = unsealUserKey(backend, found)
  const { account, actor } = user
  await recordAccountEvent(tx, { account, actor, action: 'key.revealed', subject: found.masked })
  const { id, name, createdAt, expiresAt } = found
  return { id, key, name, createdAt, expiresAt, isNew: false }
}

/**
 * Creates a user that a request names, when the policy of the account lets requests do so.
 *
 * @returns false when the policy does not.
 * @throws Refusal `forbidden` when the account has as many users as it may.
 */
export async function createNamedUser(
  tx: Transaction,
  backend: SealBackend,
  user: AccountUser & { actor: string },
): Promise<boolean> {
  if ((await lockUserPolicy(tx, user.account)) !== true) return false
  await createUserKey(tx, backend, { ...user, name: 'User', expiresAt: null })
  return true
}

/** @returns undefined when the account has a user of that id. */
async function createUserKey(
  tx: Transaction,
  backend: SealBackend,
  { account, externalId, actor, name, expiresAt }: NewUser,
): Promise<UserKey | undefined> {
  const vault = await insertUserVault(tx, account, externalId)
  if (vault === undefined) return undefined
  const minted = mintSealedKey(backend)
  const row = { ...minted, vault, account, kind: 'vault', name, expiresAt } as const
  const event = { actor, action: 'key.minted' } as const
  const createdAt = await storeKey(tx, backend.config.keyPepper, { ...row, ...event })
  // The event holds its account until the transaction ends: of requests at once each counts those before it.
  const { users, usersMax } = await countUsers(tx.query, account, backend.config.usersMax)
  if (users > usersMax) throw refusal('forbidden', 'tooManyUsers', { usersMax })
  const { id, key } = minted
  return { id, key, name, createdAt, expiresAt, isNew: true }
}

/** A new raw key of a user, and its sealed form, which opens with its id. */
export function mintSealedKey({ seal }: Pick<SealBackend, 'seal'>) {
  const id = mintId()
  const key = mintKey('vault')
  return { id, key, sealed: seal.seal(key, sealContext(id)) }
}

function unsealUserKey({ seal }: SealBackend, { id, sealed }: StoredUserKey): string {
  try {
    if (sealed !== null) return seal.open(sealed, sealContext(id))
  } catch {
    // The master key that sealed it is not configured any more.
  }
  throw refusal('conflict', 'userKeySealed', { id })
}

const sealContext = (id: string): string => `memory_keys:${id}`
